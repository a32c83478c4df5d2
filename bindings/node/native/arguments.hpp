// SPDX-License-Identifier: MIT
#ifndef STANCHION_NODE_ARGUMENTS_HPP
#define STANCHION_NODE_ARGUMENTS_HPP

#include <array>
#include <cmath>
#include <string>

#include "handles.hpp"

// Arguments from JavaScript, as the C ABI takes them. `undefined` is NULL, or the default.

namespace stn_node {

[[noreturn]] void refuse(Napi::Env env, const char* text); // as `invalid_argument`

// A string, as UTF-8, or bytes; borrowed from the stack or from JavaScript for the length of a call.
class bytes_in {
  public:
    explicit bytes_in(const Napi::Value& value);
    bytes_in(const bytes_in&) = delete;
    bytes_in& operator=(const bytes_in&) = delete;
    const void* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

  private:
    std::array<char, 512> small_;
    std::string large_;
    const void* data_ = nullptr;
    std::size_t size_ = 0;
};

// NUL-terminated text.
class text_in {
  public:
    explicit text_in(const Napi::Value& value) : null_(value.IsUndefined()) {
        if (!null_) text_ = value.ToString().Utf8Value();
        if (text_.find('\0') != std::string::npos) refuse(value.Env(), "a text contains a NUL");
    }
    const char* get() const noexcept { return null_ ? nullptr : text_.c_str(); }

  private:
    bool null_;
    std::string text_;
};

inline std::int64_t ms_in(const Napi::Value& value) {
    if (value.IsUndefined()) return STN_DEFAULT_MS;
    const double ms = value.As<Napi::Number>().DoubleValue();
    if (ms == HUGE_VAL) return STN_NO_LIMIT;
    if (!(std::fabs(ms) <= 9007199254740991.0) || ms != std::floor(ms)) {
        refuse(value.Env(), "a number of milliseconds must be a whole number");
    }
    return static_cast<std::int64_t>(ms);
}
inline std::uint64_t number_in(const Napi::Value& value) {
    return value.IsUndefined() ? 0 : static_cast<std::uint64_t>(value.As<Napi::Number>().Int64Value());
}
inline std::int32_t int_in(const Napi::Value& value) {
    return value.As<Napi::Number>().Int32Value();
}
inline std::uint32_t flags_in(const Napi::Value& value) {
    return value.As<Napi::Number>().Uint32Value();
}
inline stn_queue* queue_in(const Napi::Value& value) {
    auto* m = unwrap<mailbox>(value);
    return m ? m->queue : nullptr;
}
inline stn_queue* queue_or_null(const Napi::Value& value) {
    return value.IsUndefined() ? nullptr : queue_in(value);
}

// Calls f(stn_error**) and throws what it reports.
template <class F> void must(Napi::Env env, F&& f) {
    stn_error* err = nullptr;
    if (f(&err) != STN_OK) fail(env, err);
}

// Makes a handle by f(T** out, stn_error**).
template <class T, class F> Napi::Value made(Napi::Env env, F&& f) {
    T* out = nullptr;
    must(env, [&](stn_error** err) { return f(&out, err); });
    return wrap(env, out);
}

// An operation's number, for `cancel`; where a double would round it, as a BigInt.
inline Napi::Value op_out(Napi::Env env, std::uint64_t op) {
    constexpr std::uint64_t exact = std::uint64_t{1} << 53U;
    if (op <= exact) return Napi::Number::New(env, static_cast<double>(op));
    return Napi::BigInt::New(env, op);
}
inline std::uint64_t op_in(const Napi::Value& value) {
    bool lossless = true;
    return value.IsBigInt() ? value.As<Napi::BigInt>().Uint64Value(&lossless) : number_in(value);
}

// Begins an operation by f(uint64_t* op, stn_error**) and gives its number.
template <class F> Napi::Value begun(Napi::Env env, F&& f) {
    std::uint64_t op = 0;
    must(env, [&](stn_error** err) { return f(&op, err); });
    return op_out(env, op);
}

} // namespace stn_node

#endif
