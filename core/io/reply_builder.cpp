// SPDX-License-Identifier: MIT
#include "io/reply_builder.hpp"

#include <new>
#include <utility>

#include <hiredis/hiredis.h>

namespace stn {

// Called by hiredis, which is C: nothing may be thrown, and null means "out of memory".
struct reply_builder::functions {
    static reply_builder& of(const redisReadTask* t) { return *static_cast<reply_builder*>(t->privdata); }

    static reply* place(const redisReadTask* t) {
        if (t->parent == nullptr) {
            reply_builder& self = of(t);
            self.root_ = {};
            self.items_ = 0;
            self.push_ = false;
            return &self.root_;
        }
        return &static_cast<reply*>(t->parent->obj)->items[static_cast<std::size_t>(t->idx)];
    }

    static int depth(const redisReadTask* t) {
        int levels = 1;
        for (; t->parent != nullptr; t = t->parent) ++levels;
        return levels;
    }

    static void* string(const redisReadTask* t, char* text, std::size_t n) try {
        reply* r = place(t);
        constexpr std::size_t verbatim_head = 4; // "txt:"
        if (t->type == REDIS_REPLY_VERB && n >= verbatim_head) {
            text += verbatim_head;
            n -= verbatim_head;
        }
        r->kind = t->type == REDIS_REPLY_ERROR    ? reply_kind::error
                  : t->type == REDIS_REPLY_STATUS ? reply_kind::status
                                                  : reply_kind::bulk;
        r->text.assign(text, n);
        return r;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }

    static void* array(const redisReadTask* t, std::size_t n) try {
        reply_builder& self = of(t);
        reply* r = place(t);
        if (t->parent == nullptr) self.push_ = t->type == REDIS_REPLY_PUSH;
        if (n > most_items - self.items_ || depth(t) > deepest) {
            self.over_bounds_ = true;
            return nullptr;
        }
        self.items_ += n;
        r->kind = reply_kind::array;
        r->items.resize(n);
        return r;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }

    static void* integer(const redisReadTask* t, long long n) {
        reply* r = place(t);
        r->kind = reply_kind::integer;
        r->integer = n;
        return r;
    }

    static void* real(const redisReadTask* t, double, char* text, std::size_t n) { return string(t, text, n); }
    static void* nil(const redisReadTask* t) { return place(t); }
    static void* boolean(const redisReadTask* t, int yes) { return integer(t, yes); }
    static void drop(void*) {} // replies belong to the builder

    static inline redisReplyObjectFunctions table = {&string, &array, &integer, &real, &nil, &boolean, &drop};
};

void reply_builder::attach(redisReader& to) {
    to.fn = &functions::table;
    to.privdata = this;
    to.maxelements = static_cast<long long>(most_items);
}

reply reply_builder::take() {
    return std::exchange(root_, {});
}

} // namespace stn
