// SPDX-License-Identifier: MIT
#include "base/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace stn {
namespace {

constexpr std::size_t longest_word = 64; // the rest of a longer one says nothing, and costs

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string folded(std::string_view text) {
    std::string out(text.substr(0, longest_word));
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

// Edit distance with swaps of neighbours (optimal string alignment), row by row.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        before.swap(last);
        last.swap(row);
    }
    return last[b.size()];
}

} // namespace

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names) {
    const std::string wanted = folded(word);
    std::string_view best;
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const std::string_view name : names) {
        const std::size_t edits = distance(wanted, folded(name));
        if (edits < least) {
            least = edits;
            best = name;
        }
    }
    return best;
}

} // namespace stn
