// SPDX-License-Identifier: MIT
#include "environment.hpp"

#include "handles.hpp"

namespace stn_node {

environment& environment::of(Napi::Env env) {
    return **env.GetInstanceData<std::shared_ptr<environment>>();
}

Napi::Value error_values(Napi::Env env, const stn_error* err) {
    auto out = Napi::Array::New(env, 4);
    std::size_t n = 0;
    const auto* key = static_cast<const char*>(stn_error_key(err, &n));
    const char* server_text = stn_error_server_text(err);
    out.Set(0U, Napi::String::New(env, stn_error_message(err)));
    out.Set(1U, key ? Napi::Value(Napi::String::New(env, key, n)) : env.Undefined());
    out.Set(2U, server_text ? Napi::Value(Napi::String::New(env, server_text)) : env.Undefined());
    out.Set(3U, Napi::Number::New(env, stn_error_flags(err)));
    return out;
}

void fail(Napi::Env env, stn_error* err) {
    const std::unique_ptr<stn_error, void (*)(stn_error*)> owned(err, stn_error_free);
    const std::int32_t status = stn_error_code(err);
    const Napi::Value made =
        environment::of(env).make_error.Call({Napi::Number::New(env, status), error_values(env, err)});
    throw Napi::Error(env, made);
}

box* box_of(Napi::Env env, napi_value value, kind is, const char* text) {
    void* p = nullptr;
    napi_valuetype type = napi_undefined;
    if (napi_typeof(env, value, &type) == napi_ok && type == napi_external &&
        napi_get_value_external(env, value, &p) == napi_ok) {
        auto* b = static_cast<box*>(p);
        if (environment::of(env).boxes.count(b) == 1 && b->is == is) return b;
    }
    throw Napi::TypeError::New(env, std::string("stanchion: this is no ") + text);
}

} // namespace stn_node
