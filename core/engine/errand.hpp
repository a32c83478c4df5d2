// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/blocks.hpp"
#include "base/clock.hpp"

namespace stn {

// Something to do in a turn. Making one may run out of memory; handing it on may not.
class errand {
  public:
    errand() = default;
    template <class Do>
        requires std::invocable<Do&, mono_ms> && (!std::same_as<std::remove_cvref_t<Do>, errand>)
    explicit errand(Do what) : head_(std::make_unique<one<Do>>(std::move(what))) {}

  private:
    friend class errand_list;
    struct node : blocks::made {
        node() = default;
        node(const node&) = delete;
        node& operator=(const node&) = delete;
        virtual ~node() = default;
        virtual void run(mono_ms now) = 0;
        std::unique_ptr<node> next;
    };
    template <class Do> struct one final : node {
        explicit one(Do what) : act(std::move(what)) {}
        void run(mono_ms now) override { act(now); }
        Do act;
    };
    std::unique_ptr<node> head_;
};

// Errands in the order in which they came.
class errand_list {
  public:
    errand_list() = default;
    ~errand_list() { clear(); }
    errand_list(const errand_list&) = delete;
    errand_list& operator=(const errand_list&) = delete;

    void add(errand&& e) noexcept {
        if (!e.head_) return;
        auto& place = last_ == nullptr ? head_ : last_->next;
        last_ = e.head_.get();
        place = std::move(e.head_);
    }
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    void swap(errand_list& other) noexcept {
        head_.swap(other.head_);
        std::swap(last_, other.last_);
    }
    // Runs them, and lets each go before the next.
    void run_all(mono_ms now) {
        while (head_) {
            pop()->run(now);
        }
    }
    void clear() noexcept {
        while (head_) pop();
    }

  private:
    std::unique_ptr<errand::node> pop() noexcept {
        auto first = std::move(head_);
        head_ = std::move(first->next);
        if (!head_) last_ = nullptr;
        return first;
    }
    std::unique_ptr<errand::node> head_;
    errand::node* last_ = nullptr;
};

} // namespace stn
