// SPDX-License-Identifier: MIT
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"

// Who waits for what: flights by key, and in each flight its callers, oldest first.
//
// Everything that may race in a single-flight is one call here, made under one lock of the engine:
// joining, finding that nobody is left, taking all callers and leaving the table, promoting the
// oldest. Memory comes from free lists, so a flight that nobody joins costs no allocation after the
// first; a seat is named by its place and a sequence number, so a late cancel finds nothing instead
// of somebody else.
//
// A flight is
//   listed     new callers find it and join; at most one listed flight per key
//   unlisted   runs for its callers only (answered, detached by an invalidation, overdue)
// and is forgotten when it is unlisted, empty and no longer held.
namespace stn {

struct flight_key {
    std::uint32_t space = 0; // which cache or group
    std::uint8_t kind = 0;   // what changes the result is part of a flight's identity
    token variant{};
    std::string_view key;
};

[[nodiscard]] inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) noexcept {
    std::uint64_t h = seed ^ (bytes.size() * 0x9E3779B97F4A7C15ULL);
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
        std::uint64_t word = 0;
        __builtin_memcpy(&word, bytes.data() + i, 8);
        h = (h ^ word) * 0xBF58476D1CE4E5B9ULL;
        h ^= h >> 29;
    }
    std::uint64_t rest = 0;
    for (; i < bytes.size(); ++i) rest = (rest << 8) | static_cast<unsigned char>(bytes[i]);
    h = (h ^ rest) * 0x94D049BB133111EBULL;
    return h ^ (h >> 31);
}

// All kinds of one key hash alike, so that an invalidation finds them in one place.
[[nodiscard]] inline std::uint64_t hash_of(const flight_key& k) noexcept {
    return hash_bytes(k.key, k.space);
}

// Caller: what the engine keeps of one who waits. Extra: what it keeps of a flight.
template <class Caller, class Extra> class flight_table {
  public:
    struct flight;

    struct seat {
        Caller who{};
        mono_ms deadline = forever_ms;
        flight* in = nullptr;
        seat* next = nullptr;
        seat* prev = nullptr;
        std::uint32_t index = 0;
        std::uint32_t seq = 0; // 0: free
    };

    struct flight {
        std::uint64_t id = 0;
        std::uint64_t hash = 0;
        std::uint32_t space = 0;
        std::uint8_t kind = 0;
        bool listed = false;
        std::uint32_t holds = 0;
        std::uint32_t waiting = 0;
        token variant{};
        std::string key;
        seat* oldest = nullptr;
        seat* youngest = nullptr;
        mono_ms alarm = forever_ms; // somebody will look at the deadlines by then
        flight* chain = nullptr;
        Extra extra{};
    };

    explicit flight_table(std::uint64_t id_step = 1, std::uint64_t first_id = 1)
        : next_id_(first_id),
          id_step_(id_step),
          buckets_(64, nullptr) {}

    [[nodiscard]] flight* find(const flight_key& k, std::uint64_t hash) const noexcept {
        for (flight* f = buckets_[hash & (buckets_.size() - 1)]; f != nullptr; f = f->chain) {
            if (f->hash == hash && f->space == k.space && f->kind == k.kind && f->variant == k.variant &&
                f->key == k.key) {
                return f;
            }
        }
        return nullptr;
    }

    // A new flight, held once by its maker. This and `join` alone may run out of memory; nothing has
    // happened then.
    flight* open(const flight_key& k, std::uint64_t hash, bool listed) {
        if (listed && listed_ >= buckets_.size()) grow();
        if (free_flights_ == nullptr) free_flights_ = &flights_.emplace_back();
        flight* const f = free_flights_;
        f->key.assign(k.key);
        free_flights_ = f->chain;
        f->chain = nullptr;
        f->id = next_id_;
        next_id_ += id_step_;
        f->hash = hash;
        f->space = k.space;
        f->kind = k.kind;
        f->variant = k.variant;
        f->holds = 1;
        f->alarm = forever_ms;
        ++live_;
        if (listed) list(*f);
        return f;
    }

    seat* join(flight& f, Caller who, mono_ms deadline) {
        seat* s = take_seat();
        s->who = std::move(who);
        s->deadline = deadline;
        append(f, s);
        return s;
    }

    // The seat of that name, or nothing when its caller has been answered.
    [[nodiscard]] seat* seat_at(std::uint32_t index, std::uint32_t seq) noexcept {
        if (index >= seats_.size()) return nullptr;
        seat* s = &seats_[index];
        return s->seq == seq && seq != 0 && s->in != nullptr ? s : nullptr;
    }

    // Takes one caller out.
    Caller leave(seat* s) {
        unlink(s);
        Caller who = std::move(s->who);
        give_seat(s);
        return who;
    }

    // A caller that comes back: the youngest again.
    void rejoin(flight& f, Caller who, mono_ms deadline) { join(f, std::move(who), deadline); }

    // Everybody who waits, oldest first; the flight stays.
    template <class Take> void take_all(flight& f, Take&& take) {
        while (f.oldest != nullptr) take(leave(f.oldest));
    }

    void unlist(flight& f) noexcept {
        if (!f.listed) return;
        f.listed = false;
        flight** at = &buckets_[f.hash & (buckets_.size() - 1)];
        while (*at != &f) at = &(*at)->chain;
        *at = f.chain;
        f.chain = nullptr;
        --listed_;
    }

    void hold(flight& f) noexcept { ++f.holds; }

    // True when it was forgotten by this.
    bool drop(flight& f) {
        assert(f.holds > 0);
        --f.holds;
        return forget_if_done(f);
    }

    // Every flight of one key, listed or not. `see` may unlist it.
    template <class See> void each_of_key(std::uint32_t space, std::string_view key, std::uint64_t hash, See&& see) {
        if (live_ == listed_) {
            for (flight* f = buckets_[hash & (buckets_.size() - 1)]; f != nullptr;) {
                flight* const next = f->chain;
                if (f->hash == hash && f->space == space && f->key == key) see(*f);
                f = next;
            }
            return;
        }
        for (flight& f : flights_) {
            if (f.id != 0 && f.hash == hash && f.space == space && f.key == key) see(f);
        }
    }

    template <class See> void each_flight(See&& see) {
        for (flight& f : flights_) {
            if (f.id != 0) see(f);
        }
    }

    // The first caller, from seat `from` on, of whom `which` is true; `from` moves there.
    template <class Which> seat* find_seat(std::size_t& from, Which&& which) {
        for (; from < seats_.size(); ++from) {
            seat& s = seats_[from];
            if (s.in != nullptr && which(s.who)) return &s;
        }
        return nullptr;
    }

    [[nodiscard]] std::size_t live() const noexcept { return live_; }

  private:
    void list(flight& f) noexcept {
        flight*& head = buckets_[f.hash & (buckets_.size() - 1)];
        f.chain = head;
        head = &f;
        f.listed = true;
        ++listed_;
    }

    void grow() {
        std::vector<flight*> wider(buckets_.size() * 2, nullptr);
        for (flight* f : buckets_) {
            while (f != nullptr) {
                flight* next = f->chain;
                flight*& head = wider[f->hash & (wider.size() - 1)];
                f->chain = head;
                head = f;
                f = next;
            }
        }
        buckets_.swap(wider);
    }

    bool forget_if_done(flight& f) {
        if (f.holds != 0 || f.listed || f.waiting != 0) return false;
        f.id = 0;
        f.extra = Extra{};
        f.chain = free_flights_;
        free_flights_ = &f;
        --live_;
        return true;
    }

    void append(flight& f, seat* s) noexcept {
        s->in = &f;
        s->prev = f.youngest;
        s->next = nullptr;
        (f.youngest != nullptr ? f.youngest->next : f.oldest) = s;
        f.youngest = s;
        ++f.waiting;
    }

    void unlink(seat* s) noexcept {
        flight& f = *s->in;
        (s->prev != nullptr ? s->prev->next : f.oldest) = s->next;
        (s->next != nullptr ? s->next->prev : f.youngest) = s->prev;
        s->in = nullptr;
        --f.waiting;
    }

    seat* take_seat() {
        seat* s = free_seats_;
        if (s == nullptr) {
            s = &seats_.emplace_back();
            s->index = static_cast<std::uint32_t>(seats_.size() - 1);
        } else {
            free_seats_ = s->next;
        }
        if (++seq_ > max_seq) seq_ = 1;
        s->seq = seq_;
        return s;
    }

    void give_seat(seat* s) noexcept {
        s->seq = 0;
        s->next = free_seats_;
        free_seats_ = s;
    }

    static constexpr std::uint32_t max_seq = (1U << 22) - 1;

    std::uint64_t next_id_;
    std::uint64_t id_step_;
    std::uint32_t seq_ = 0;
    std::size_t listed_ = 0;
    std::size_t live_ = 0;
    std::vector<flight*> buckets_;
    std::deque<flight> flights_; // never moved, reused by free list
    std::deque<seat> seats_;
    flight* free_flights_ = nullptr;
    seat* free_seats_ = nullptr;
};

} // namespace stn
