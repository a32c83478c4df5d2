// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace stn::test {

// Damages well-formed texts: flips, drops, repeats, splices, inserts what parsers trip over. The same
// seed gives the same texts on every machine.
class mutator {
  public:
    mutator(std::uint64_t seed, std::vector<std::string> corpus) : dice_(seed), corpus_(std::move(corpus)) {}

    std::string next() {
        std::string text = pick(corpus_);
        for (auto damages = below(6); damages > 0; --damages) damage(text);
        return text;
    }

  private:
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(dice_() % bound); }
    const std::string& pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

    void damage(std::string& text) {
        static const std::vector<std::string> trouble = {
            std::string(1, '\0'),
            "%",
            "%4",
            "%00",
            "\xff\xfe",
            "\xed\xa0\x80",
            "-",
            "0",
            "99999999999999999999",
            "1e309",
            "@",
            ":",
            "/",
            "?",
            "#",
            "[",
            "]",
            "{",
            "}",
            "{{",
            "\"",
            "\\",
            "\\u0000",
            ",",
            ".",
            "NaN",
            "ms",
        };
        const std::size_t at = below(text.size() + 1);
        switch (below(6)) {
        case 0: text.insert(at, pick(trouble)); break;
        case 1: text.resize(at); break;
        case 2: text.insert(at, text.substr(below(text.size() + 1), below(40))); break;
        case 3: text.replace(at, below(8), pick(corpus_).substr(0, below(60))); break;
        case 4: text.erase(at, below(8)); break;
        default:
            if (at < text.size()) text[at] = static_cast<char>(dice_());
        }
    }

    std::mt19937_64 dice_;
    std::vector<std::string> corpus_;
};

} // namespace stn::test
