// SPDX-License-Identifier: MIT
#pragma once

#include <iosfwd>
#include <vector>

#include "options.hpp"
#include "result.hpp"

namespace stampede {

// For people: a heading, one row as each strategy ends, then the promises.
// `server`: what a server calls itself, or nothing.
void print_heading(std::ostream& out, const Options& options, const std::string& server);
void print_row(std::ostream& out, const Result& result);
void print_promises(std::ostream& out, const Options& options, const std::vector<Result>& results);
// Of several runs; of one, nothing.
void print_summary(std::ostream& out, const Options& options, const std::vector<Result>& results);

// For programs: all of it in one object.
void print_json(std::ostream& out, const Options& options, const std::vector<Result>& results);

bool all_kept(const std::vector<Result>& results);

} // namespace stampede
