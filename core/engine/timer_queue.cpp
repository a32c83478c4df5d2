// SPDX-License-Identifier: MIT
#include "engine/timer_queue.hpp"

namespace stn {

void timer_queue::place(std::size_t i, timer* t) noexcept {
    heap_[i] = t;
    t->pos_ = i;
}

void timer_queue::up(std::size_t i) {
    timer* const t = heap_[i];
    while (i > 0) {
        const std::size_t parent = (i - 1) / 2;
        if (!before(*t, *heap_[parent])) break;
        place(i, heap_[parent]);
        i = parent;
    }
    place(i, t);
}

void timer_queue::down(std::size_t i) {
    timer* const t = heap_[i];
    for (;;) {
        std::size_t child = 2 * i + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && before(*heap_[child + 1], *heap_[child])) ++child;
        if (!before(*heap_[child], *t)) break;
        place(i, heap_[child]);
        i = child;
    }
    place(i, t);
}

void timer_queue::remove(timer& t) {
    const std::size_t i = t.pos_;
    t.pos_ = SIZE_MAX;
    timer* const last = heap_.back();
    heap_.pop_back();
    if (last == &t) return;
    place(i, last);
    up(i);
    down(last->pos_);
}

void timer_queue::set(timer& t, mono_ms at) {
    if (t.pos_ != SIZE_MAX) {
        if (t.at_ == at) return;
        remove(t);
    }
    t.at_ = at;
    if (at == forever_ms) return;
    t.order_ = ++order_;
    heap_.push_back(&t);
    t.pos_ = heap_.size() - 1;
    up(t.pos_);
}

timer* timer_queue::pop(mono_ms now) {
    if (heap_.empty() || heap_.front()->at_ > now) return nullptr;
    timer* const t = heap_.front();
    remove(*t);
    t->at_ = forever_ms;
    return t;
}

} // namespace stn
