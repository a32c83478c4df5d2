// SPDX-License-Identifier: MIT
#include "protocol/outcome.hpp"

#include "base/blocks.hpp"

namespace stn {

outcome_ptr outcome_error(error why) {
    auto o = blocks::make_shared<outcome>();
    o->code = why.code;
    o->why = std::move(why);
    return o;
}

std::shared_ptr<outcome> outcome_of(std::string bytes, source from) {
    auto o = blocks::make_shared<outcome>();
    o->storage = std::move(bytes);
    o->from = from;
    envelope e;
    if (decode(o->storage, e) != reading::ours) {
        o->code = status::undecodable;
        return o;
    }
    o->code = e.kind == entry_kind::absent ? status::absent : status::ok;
    o->payload = e.payload;
    o->codec = e.codec;
    o->generation = e.generation;
    o->created = e.created;
    o->soft_at = e.soft_at;
    o->delta_ms = e.delta_ms;
    return o;
}

} // namespace stn
