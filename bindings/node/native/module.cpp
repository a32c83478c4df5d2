// SPDX-License-Identifier: MIT
//
// The native half of the package `stanchion`: stanchion.h for JavaScript, and no more. Bytes in, bytes out, opaque
// handles, and a queue that is drained in batches; what the package's users see is written in ../src.

#include "calls.hpp"
#include "environment.hpp"

namespace {

template <class F> void numbers(Napi::Env env, Napi::Object exports, const char* table, F&& fill) {
    auto to = Napi::Object::New(env);
    fill(to);
    exports.Set(table, to);
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    env.SetInstanceData(new std::shared_ptr<stn_node::environment>(std::make_shared<stn_node::environment>()));
    stn_node::add_calls(env, exports);
    const auto number = [&](std::int32_t n) { return Napi::Number::New(env, n); };
    // The tables of the header: the names of numbers stand there and nowhere else.
    numbers(env, exports, "statuses", [&](Napi::Object to) {
#define STN_NODE_STATUS(n, NAME, name, retryable, text) to.Set(#name, number(n));
        STN_STATUS_MAP(STN_NODE_STATUS)
#undef STN_NODE_STATUS
    });
    numbers(env, exports, "reasons", [&](Napi::Object to) {
#define STN_NODE_REASON(n, NAME, name, text) to.Set(#name, number(n));
        STN_REASON_MAP(STN_NODE_REASON)
#undef STN_NODE_REASON
    });
    exports.Set("version", Napi::String::New(env, stn_version_string()));
    return exports;
}

} // namespace

NODE_API_MODULE(stanchion, init)
