// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <iostream>

#include "exit_code.hpp"
#include "text.hpp"

namespace cli {

namespace {

std::string dumped(const nlohmann::json& object) {
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); // names are bytes of any kind
}

void line(const options& given, const std::string& what, const std::string& text, const nlohmann::json& more) {
    if (!given.json) {
        std::cerr << "stanchion: " + text + "\n" << std::flush;
        return;
    }
    nlohmann::json object = more.is_object() ? more : nlohmann::json::object();
    object["event"] = what;
    object["message"] = text;
    std::cerr << dumped(object) + "\n" << std::flush;
}

} // namespace

failure failed(const std::string& subject, std::int32_t status, const stn_error* error) {
    std::string text = error != nullptr ? stn_error_message(error) : "";
    nlohmann::json more = nlohmann::json::object();
    if (text.empty()) text = stn_status_name(status);
    if (const char* said = stn_error_server_text(error)) {
        more["server_text"] = said;
        if (text.find(said) == std::string::npos) text += " (\"" + std::string(said) + "\")";
    }
    if (!subject.empty()) text = subject + ": " + text;
    return {exit_code_of(status), stn_status_name(status), text, std::move(more)};
}

void tell(const options& given, const std::string& what, const std::string& text, const nlohmann::json& more) {
    if (!given.quiet) line(given, what, text, more);
}

void tell(const options& given, const failure& error) {
    nlohmann::json more = error.more.is_object() ? error.more : nlohmann::json::object();
    more["exit"] = error.code;
    line(given, error.kind, error.what(), more);
}

void answer(const options& given, const std::string& text, const nlohmann::json& as_json) {
    std::cout << (given.json ? dumped(as_json) : text) + "\n" << std::flush;
}

} // namespace cli
