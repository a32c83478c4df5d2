// SPDX-License-Identifier: MIT
#pragma once

#include <stanchion/stanchion.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "options.hpp"

namespace cli {

// It ends here: what to tell, and the exit code.
struct failure : std::runtime_error {
    failure(int code_, std::string kind_, const std::string& text, nlohmann::json more_ = {})
        : std::runtime_error(text),
          code(code_),
          kind(std::move(kind_)),
          more(std::move(more_)) {}
    int code;
    std::string kind; // "busy", "unavailable": for --json
    nlohmann::json more;
};

// What the library said, about `subject` ("lock \"x\""; may be empty).
[[nodiscard]] failure failed(const std::string& subject, std::int32_t status, const stn_error* error);

// One line on stderr: `stanchion: text`, or with --json an object. Never with --quiet, which errors ignore.
void tell(const options& given, const std::string& what, const std::string& text, const nlohmann::json& more = {});
void tell(const options& given, const failure& error);

// The answer on stdout.
void answer(const options& given, const std::string& text, const nlohmann::json& as_json);

} // namespace cli
