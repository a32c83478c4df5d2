// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/status.hpp"

namespace stn {

// What went wrong, for a person: `message` names the offender, `key` the key it was about,
// `server_text` what the store said, word for word.
struct error {
    status code = status::internal;
    std::string message;
    std::string key;
    std::string server_text;
    bool may_have_applied = false;
};

// A value or an error: the part of std::expected we use (g++ 12 has none).
template <class T> class [[nodiscard]] result {
  public:
    result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
    result(error e) : held_(std::in_place_index<1>, std::move(e)) {}

    [[nodiscard]] bool ok() const noexcept { return held_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }
    [[nodiscard]] T& operator*() { return std::get<0>(held_); }
    [[nodiscard]] const T& operator*() const { return std::get<0>(held_); }
    [[nodiscard]] T* operator->() { return &std::get<0>(held_); }
    [[nodiscard]] const T* operator->() const { return &std::get<0>(held_); }
    [[nodiscard]] const stn::error& failure() const { return std::get<1>(held_); }

  private:
    std::variant<T, stn::error> held_;
};

[[nodiscard]] inline error fail(status code, std::string message, std::string key = {}) {
    return error{code, std::move(message), std::move(key), {}, false};
}

} // namespace stn
