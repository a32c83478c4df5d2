// SPDX-License-Identifier: MIT
#pragma once

namespace stampede {

// What the coordinator starts this program with to make it a node; file descriptor `node_fd` leads to the
// coordinator then.
inline constexpr const char* node_word = "--as-node";
inline constexpr int node_fd = 3;

// A node to its end; the exit status.
int run_node();

} // namespace stampede
