// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "agenda.hpp"
#include "tale.hpp"

namespace stn::sim {

// What must hold, whatever goes wrong: X(name, promise). They judge from outside: by what the store
// executed, what hosts were told and what the source said, not by what a machine believes.
#define SIM_CHECKER_TABLE(X)                                                                                      \
    X(one_load_per_lease, "of a granted token one loader runs at a time, begun after the grant; its value alone " \
                          "is stored")                                                                            \
    X(no_stale_after_invalidation, "no load that read the source before an invalidation is stored after it")      \
    X(read_your_invalidation, "a process never reads what it has invalidated")                                    \
    X(read_your_put, "a process never reads a load begun before what it has put")                                 \
    X(answered_exactly_once, "every accepted call has one terminal event, at most one REFRESH and one REVOKED")   \
    X(ttl_everywhere, "no key of ours is ever without TTL")                                                       \
    X(nothing_left_over, "after everything has ended nothing is held, armed, pending or running")                 \
    X(comes_to_an_end, "the machines of a process do not talk to each other without end")                         \
    X(deadline_kept, "a caller is answered by its deadline")                                                      \
    X(one_refresh, "one refresh load per generation")                                                             \
    X(waiter_looks, "who waits for a load elsewhere looks again by itself")                                       \
    X(woken_soon, "calm: who waits for a load elsewhere has its value as soon as it is stored")                   \
    X(by_the_book, "calm: no command is lost, and nobody loads without a lease")                                  \
    X(right_value, "a value is the one that some load or put of that key made")                                   \
    X(fill_told_truly, "FILLED ok means that the value was stored")                                               \
    X(force_is_fresh, "a forced fetch is answered by a load begun after it")                                      \
    X(stats_agree, "the library counts the loads that the hosts have run")                                        \
    X(max_loads_kept, "no more loads at a time than max_loads")                                                   \
    X(one_holder, "locks: at most one handle of a name is held at any moment of true time")                       \
    X(fences_increase, "locks: the fence in a key only grows")                                                    \
    X(loss_told_once, "locks: a loss is told once, and not of what is held")                                      \
    X(no_orphan, "locks, calm: what nobody holds nor asks for is free within half a second")                      \
    X(release_told_truly, "locks: what was released is never said to have been another's, or gone")               \
    X(foreign_untouched, "locks: no command of ours changes or prolongs what is held under another token")        \
    X(lost_is_final, "locks, calm: what somebody else has deleted is never held again")

enum class checker : std::uint8_t {
#define SIM_CHECKER_ENUM(name, text) name,
    SIM_CHECKER_TABLE(SIM_CHECKER_ENUM)
#undef SIM_CHECKER_ENUM
        count_
};

[[nodiscard]] std::string_view checker_name(checker c);

class judge {
  public:
    struct verdict {
        checker by;
        micros at;
        std::string text;
    };

    judge(const agenda& when, tale& told) noexcept : when_(when), told_(told) {}

    template <class... Parts> void broken(checker by, const Parts&... parts) {
        std::ostringstream out;
        (out << ... << parts);
        told_.line("JUDGE", "*** ", checker_name(by), ": ", out.str());
        if (found_.size() < 20) found_.push_back({by, when_.now(), out.str()});
    }

    [[nodiscard]] const std::vector<verdict>& found() const noexcept { return found_; }

  private:
    const agenda& when_;
    tale& told_;
    std::vector<verdict> found_;
};

} // namespace stn::sim
