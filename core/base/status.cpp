// SPDX-License-Identifier: MIT
#include "base/status.hpp"

namespace stn {

std::string_view status_name(status code) noexcept {
    switch (code) {
#define STN_STATUS_NAME(name, number, retryable, text) \
    case status::name: return #name;
        STN_STATUS_TABLE(STN_STATUS_NAME)
#undef STN_STATUS_NAME
    }
    return "unknown";
}

std::string_view status_text(status code) noexcept {
    switch (code) {
#define STN_STATUS_TEXT(name, number, retryable, text) \
    case status::name: return text;
        STN_STATUS_TABLE(STN_STATUS_TEXT)
#undef STN_STATUS_TEXT
    }
    return "unknown status";
}

bool status_retryable(status code) noexcept {
    switch (code) {
#define STN_STATUS_RETRY(name, number, retryable, text) \
    case status::name: return retryable;
        STN_STATUS_TABLE(STN_STATUS_RETRY)
#undef STN_STATUS_RETRY
    }
    return false;
}

} // namespace stn
