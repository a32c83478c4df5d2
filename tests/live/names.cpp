// SPDX-License-Identifier: MIT
#include "names.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <netdb.h>

namespace {

struct entry {
    std::vector<std::string> addresses;
    std::chrono::milliseconds after;
};

std::mutex mutex;
std::map<std::string, entry>& book() {
    static auto* const one = new std::map<std::string, entry>; // threads that resolve may outlive the tests
    return *one;
}

std::optional<entry> find(const char* name) {
    const std::lock_guard lock(mutex);
    const auto it = book().find(name == nullptr ? "" : name);
    return it == book().end() ? std::nullopt : std::optional(it->second);
}

} // namespace

namespace stn::test {

void let_name_be(const std::string& name, std::vector<std::string> addresses, std::chrono::milliseconds after) {
    const std::lock_guard lock(mutex);
    book()[name] = {std::move(addresses), after};
}

} // namespace stn::test

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** out) {
    using function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    const auto known = find(name);
    if (!known) return real(name, service, hints, out);
    std::this_thread::sleep_for(known->after);
    *out = nullptr;
    addrinfo** end = out;
    for (const std::string& ip : known->addresses) {
        if (const int fault = real(ip.c_str(), service, hints, end); fault != 0) return fault;
        while (*end != nullptr) end = &(*end)->ai_next; // freeaddrinfo takes a list apart piece by piece
    }
    return *out == nullptr ? EAI_NONAME : 0;
}
