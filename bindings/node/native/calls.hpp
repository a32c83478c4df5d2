// SPDX-License-Identifier: MIT
#ifndef STANCHION_NODE_CALLS_HPP
#define STANCHION_NODE_CALLS_HPP

#include <napi.h>

namespace stn_node {

void add_calls(Napi::Env env, Napi::Object to);

} // namespace stn_node

#endif
