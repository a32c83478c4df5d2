// SPDX-License-Identifier: MIT
//
// What a running script has named, and its verbs: each a call or two of the addon, and the judgement of what came.

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { native } = require('../../dist/native.js');
require('../../dist/errors.js'); // names the errors

const EXPECT_MS = 2000;
const NOTHING_MS = 50;

const statuses = native.statuses;
const reasons = native.reasons;
const codecs = { raw: 0, json: 1, private: 2 };
const sources = { none: 0, store: 0x10, flight: 0x20, near: 0x30, memory: 0x40 };
const leaseStates = { live: 1, revoked: 2, ended: 3 };
const lockStates = { held: 1, released: 2, lost: 3, left: 4 };
const notices = { log: 1, breaker: 2, connection: 4, version: 8, margin: 16, all: 0x7fffffff };
const kinds = { value: 1, absent: 2, lease: 3, refresh: 4, flight: 5, lock: 6, tick: 7, done: 8, filled: 9, revoked: 10,
  lock_lost: 11, notice: 12, error: 13 };
const kindNames = Object.fromEntries(Object.entries(kinds).map(([name, number]) => [number, name]));
const nameIn = (table, number) => Object.keys(table).find((name) => table[name] === number) ?? '(unknown)';
const terminal = (event) => !['refresh', 'revoked', 'lock_lost', 'notice'].includes(event.kind);

const columns = ['kind', 'tag', 'status', 'flags', 'reason', 'codec', 'area', 'offset', 'length', 'age', 'ttlLeft', 'load',
  'ref'];
const table = new Float64Array(columns.length);

/** Takes one event, or gives the status why there is none. */
function drain(queue, timeout) {
  const out = [undefined, undefined, undefined];
  const n = native.queue_drain(queue, timeout, table, out);
  if (n <= 0) return n < 0 ? n : statuses.timeout;
  const event = Object.fromEntries(columns.map((name, i) => [name, table[i]]));
  event.kind = kindNames[event.kind];
  const [offset, end] = [event.offset, event.offset + event.length];
  event.bytes = event.area === 1 ? Buffer.from(out[0].slice(offset, end)) : (out[1] ?? Buffer.alloc(0)).subarray(offset, end);
  event.extra = out[2]?.[0];
  event.kept = native.queue_keep(queue, 0);
  return event;
}

export class World {
  things = new Map();
  tags = new Map();

  // ---- Names

  name(step, name, kind, handle, more = {}) {
    if (this.things.has(name)) step.bad('named twice', name);
    const thing = { name, kind, handle, hand: [], ...more };
    this.things.set(name, thing);
    return thing;
  }
  find(step, name, kind, what) {
    const thing = this.things.get(name);
    if (!thing || (kind && thing.kind !== kind)) step.bad(what ?? `no ${kind}`, name);
    if (!thing.handle) step.bad('freed already', name);
    return thing;
  }
  use(step, kind) {
    return this.find(step, step.operand(`a ${kind ?? 'thing'}`).text, kind);
  }
  tag(step, make) {
    const name = step.operand('a tag').text;
    if (!this.tags.has(name)) {
      if (!make) step.bad('no such tag', name);
      this.tags.set(name, { name, number: this.tags.size + 1, op: 0, begun: 0, ended: 0 });
    }
    return this.tags.get(name);
  }
  within(step) {
    const name = step.option('within');
    return name === undefined ? undefined : this.things.get(name)?.scope ?? step.bad('no load called', name);
  }
  policy(step) {
    const name = step.option('policy');
    return name === undefined ? undefined : this.find(step, name, 'policy').handle;
  }

  // ---- Numbers

  ms(step, text) {
    if (/^-?\d+$/.test(text)) return Number(text);
    if (text === 'none') return Infinity;
    try {
      return native.duration_parse(text);
    } catch {
      return step.bad('no duration', text);
    }
  }
  optionMs(step, name) {
    const text = step.option(name);
    return text === undefined ? undefined : this.ms(step, text);
  }
  number(step, tableOf, name) {
    return tableOf[name] ?? step.bad('unknown name', name);
  }
  codec(step) {
    const name = step.option('codec');
    return name === undefined ? -1 : this.number(step, codecs, name);
  }

  // ---- What a call gave

  /** Runs a call; gives what it gave, or undefined if it failed as the step promises. */
  judge(step, call) {
    const arrow = step.words[step.arrow];
    const fails = arrow && !arrow.quoted && arrow.text === 'fails';
    let wanted = 'ok';
    if (fails) {
      step.promise();
      wanted = step.need(step.promise(), 'a code').text;
    }
    let came;
    try {
      came = { value: call() };
    } catch (error) {
      if (!error.code || !(error.code in statuses)) throw error;
      if (error.code !== wanted) step.stop(`came ${error.code} "${error.message}"`);
      this.texts(step, error.message, () => step.promise());
      return undefined;
    }
    if (fails) step.stop('came ok');
    return came;
  }
  texts(step, message, next) {
    const text = Buffer.from(message);
    for (let word = next(); word; word = next()) {
      const lacks = !word.quoted && word.text === 'lacks';
      if (lacks) word = step.need(next(), 'a text after `lacks`');
      if (!word.quoted) step.bad('unknown word', word.text);
      if (text.includes(word.bytes) === lacks) step.stop(`came the text "${message}"`);
    }
  }
  judgeNumber(step, name, call) {
    const came = this.judge(step, call);
    if (!came || step.arrow === step.words.length) return came !== undefined;
    if (step.promise().text !== name) step.bad('after -> wanted', name);
    const wanted = Number(step.need(step.promise(), 'a number').text);
    if (wanted !== came.value) step.stop(`came ${came.value}`);
    return true;
  }

  // ---- Events

  keep(queue, event) {
    for (const tag of this.tags.values()) if (tag.number === event.tag && terminal(event)) tag.ended += 1;
    queue.hand.push(event);
  }
  read(queue, timeout) {
    const event = drain(queue.handle, timeout);
    if (typeof event === 'number') return event;
    this.keep(queue, event);
    return statuses.ok;
  }
  await(queue, tag, waitMs) {
    for (const until = performance.now() + waitMs; ; ) {
      const at = queue.hand.findIndex((event) => event.tag === tag.number);
      if (at >= 0) return queue.hand.splice(at, 1)[0];
      const left = until - performance.now();
      const status = this.read(queue, Math.max(0, Math.ceil(left)));
      if (status !== statuses.ok && (status !== statuses.timeout || left <= 0)) return undefined;
    }
  }
  describe(event) {
    const text = event.bytes.length > 0 ? ` "${event.bytes.subarray(0, 80)}"` : '';
    return `${event.kind} for ${event.tag}: ${nameIn(statuses, event.status)}${text} ${JSON.stringify(event.extra) ?? ''}, ` +
      `flags ${event.flags}, reason ${nameIn(reasons, event.reason)}, codec ${event.codec}, ref ${event.ref}`;
  }
  check(step, fits, event) {
    if (!fits) step.stop(`came ${this.describe(event)}`);
  }
  checkMs(step, name, came, event) {
    const text = step.option(name);
    if (text === undefined) return;
    if ((text === 'unknown' ? -1 : this.ms(step, text)) !== came) step.stop(`came ${this.describe(event)}, ${name} ${came} ms`);
  }
  checkAnswer(step, event, next) {
    if (event.kind === 'value') {
      const value = step.need(next(), 'the value');
      this.check(step, (!value.quoted && value.text === 'any') || event.bytes.equals(value.bytes), event);
    }
    this.check(step, step.flag('stale') === ((event.flags & 1) !== 0), event);
    if (step.flag('shared')) this.check(step, (event.flags & 2) !== 0, event);
    if (step.flag('alone')) this.check(step, (event.flags & 2) === 0, event);
    const source = step.option('source');
    if (source) this.check(step, (event.flags & 0xf0) === this.number(step, sources, source), event);
    const reason = step.option('reason');
    if (reason) this.check(step, event.reason === this.number(step, reasons, reason), event);
    const codec = step.option('codec');
    if (codec) this.check(step, event.codec === this.number(step, codecs, codec), event);
    this.checkMs(step, 'age', event.age, event);
    this.checkMs(step, 'ttl_left', event.ttlLeft, event);
    this.checkMs(step, 'load', event.load, event);
  }
  duty(step, event, name) {
    const scope = { lease: native.lease_scope, refresh: native.lease_scope, flight: native.flight_scope }[event.kind];
    const kind = event.kind === 'refresh' ? 'lease' : event.kind;
    this.check(step, event.extra, event);
    this.name(step, name, kind, event.extra, scope ? { scope: scope(event.extra) } : {});
  }
  drop(event) {
    if (event.extra && !Array.isArray(event.extra)) native.free_handle(event.extra);
    if (event.kept) native.free_handle(event.kept);
  }

  // ---- The end

  run(step) {
    const verb = step.operand('a verb').text;
    if (!Object.hasOwn(verbs, verb)) step.bad('unknown verb', verb);
    verbs[verb](this, step);
    const left = step.words.find((word) => !word.used);
    if (left) step.bad('a word too many:', left.text);
  }

  close(client, deadline) {
    const queue = native.queue_new(0);
    native.client_close_begin(client, deadline, queue, 1);
    drain(queue, Infinity);
    native.free_handle(queue);
  }

  end(step) {
    step.source = 'the end of the script';
    const all = [...this.things.values()];
    const queues = all.filter((thing) => thing.kind === 'queue');
    for (const queue of queues) {
      while (this.read(queue, 0) === statuses.ok);
      for (const event of queue.hand.splice(0)) {
        if (terminal(event)) step.stop(`no event left over, came ${this.describe(event)}`);
        this.drop(event);
      }
    }
    for (const client of all) if (client.kind === 'client' && client.handle) this.close(client.handle, 0);
    for (const queue of queues) {
      native.queue_close(queue.handle);
      let status;
      while ((status = this.read(queue, 0)) === statuses.ok) this.drop(queue.hand.pop());
      if (status !== statuses.closed) step.stop(`a closed queue ends with ${nameIn(statuses, status)}`);
    }
    for (const tag of this.tags.values()) {
      if (tag.begun !== tag.ended) step.stop(`came ${tag.ended} terminal events for the ${tag.begun} of ${tag.name}`);
    }
    for (const thing of all) if (thing.handle) native.free_handle(thing.handle);
  }
}

// ---- The verbs: things --------------------------------------------------------------------------------------

function make(kind, create) {
  return (world, step) => {
    const name = step.operand('a name').text;
    if (world.things.has(name)) step.bad('named twice', name);
    const came = world.judge(step, create(world, step));
    if (came) world.name(step, name, kind, came.value);
  };
}
const json = (word) => (word ? word.bytes.toString() : undefined);

/** An operation of a cache: `begin(queue, tag)` gives its number. */
function operation(world, step, prepare) {
  const cache = world.use(step, 'cache').handle;
  const rest = prepare(cache);
  const queue = world.use(step, 'queue');
  const tag = world.tag(step, true);
  step.flag('now'); // here it always comes later: the script cannot tell
  const call = rest(queue.handle, tag.number);
  const came = world.judge(step, call);
  if (!came) return;
  tag.begun += 1;
  tag.op = came.value ?? 0;
}
/** Something that ends with one event: `begin` is called with queue and tag. */
function begun(world, step, begin) {
  const queue = world.use(step, 'queue').handle;
  const tag = world.tag(step, true);
  const call = begin(queue, tag.number);
  const came = world.judge(step, call);
  if (!came) return;
  tag.begun += 1;
  tag.op = came.value ?? 0;
}
const fetchFlags = (step) => (step.flag('force') ? 1 : 0) | (step.flag('no_store') ? 2 : 0) | (step.flag('refresh') ? 4 : 0);

function outcome(step) {
  const word = step.operand('an outcome');
  if (word.quoted) return { code: 'ok', word };
  if (word.text === 'absent') return { code: 'absent' };
  if (word.text !== 'error') step.bad('no outcome', word.text);
  return { code: step.operand('a code').text, word: step.optional() };
}

const verbs = {
  client: make('client', (world, step) => {
    const url = step.operand('a URL').text;
    const options = json(step.optional());
    return () => native.client_open(url, options);
  }),
  cache: make('cache', (world, step) => {
    const client = world.use(step, 'client').handle;
    const cache = step.operand("the cache's name").bytes;
    const options = json(step.optional());
    return () => native.cache_open(client, cache, options);
  }),
  policy: make('policy', (world, step) => {
    const cache = world.use(step, 'cache').handle;
    const changes = json(step.operand('the changes'));
    return () => native.policy_new(cache, changes);
  }),
  queue: make('queue', (world, step) => {
    const scope = Number(step.option('scope') ?? 0);
    return () => native.queue_new(scope);
  }),
  group: make('group', (world, step) => {
    const owner = step.optional();
    const options = json(step.optional());
    const client = owner ? world.find(step, owner.text, 'client').handle : undefined;
    return () => native.group_new(client, options);
  }),
  free(world, step) {
    const thing = world.use(step);
    if (thing.kind === 'queue') step.bad('close queues, do not free', thing.name);
    native.free_handle(thing.handle);
    thing.handle = undefined;
  },
  close(world, step) {
    const thing = world.use(step);
    if (thing.kind === 'queue') {
      world.judge(step, () => native.queue_close(thing.handle));
      return;
    }
    const to = step.optional();
    const deadline = world.optionMs(step, 'deadline');
    if (!to) {
      world.judge(step, () => world.close(thing.handle, deadline));
      return;
    }
    const queue = world.find(step, to.text, 'queue').handle;
    const tag = world.tag(step, true);
    if (world.judge(step, () => native.client_close_begin(thing.handle, deadline, queue, tag.number))) tag.begun += 1;
  },

  // ---- Operations

  fetch(world, step) {
    operation(world, step, (cache) => {
      const key = step.operand('a key').bytes;
      return (queue, tag) => {
        const [flags, policy, deadline, within] =
          [fetchFlags(step), world.policy(step), world.optionMs(step, 'deadline'), world.within(step)];
        return () => native.cache_fetch(cache, policy, key, deadline, flags, within, queue, tag);
      };
    });
  },
  refetch(world, step) {
    operation(world, step, (cache) => {
      const event = world.use(step, 'event').handle;
      return (queue, tag) => {
        const [policy, deadline, within] = [world.policy(step), world.optionMs(step, 'deadline'), world.within(step)];
        return () => native.cache_refetch(cache, policy, event, deadline, within, queue, tag);
      };
    });
  },
  get(world, step) {
    operation(world, step, (cache) => {
      const key = step.operand('a key').bytes;
      return (queue, tag) => {
        const deadline = world.optionMs(step, 'deadline');
        return () => native.cache_get(cache, key, deadline, queue, tag);
      };
    });
  },
  put(world, step) {
    operation(world, step, (cache) => {
      const key = step.operand('a key').bytes;
      const value = step.operand('a value').bytes;
      return (queue, tag) => {
        const [policy, codec] = [world.policy(step), world.codec(step)];
        const [ttl, soft, deadline] = ['ttl', 'soft_ttl', 'deadline'].map((name) => world.optionMs(step, name));
        return () => native.cache_put(cache, policy, key, value, codec, ttl, soft, deadline, queue, tag);
      };
    });
  },
  invalidate(world, step) {
    operation(world, step, (cache) => {
      const key = step.operand('a key').bytes;
      return (queue, tag) => {
        const flags = step.flag('stale') ? 1 : 0;
        const deadline = world.optionMs(step, 'deadline');
        return () => native.cache_invalidate(cache, key, flags, deadline, queue, tag);
      };
    });
  },
  cancel(world, step) {
    const queue = world.use(step, 'queue').handle;
    const { op } = world.tag(step, false);
    world.judge(step, () => native.cancel(queue, op));
  },
  ready(world, step) {
    const client = world.use(step, 'client').handle;
    begun(world, step, (queue, tag) => {
      const deadline = world.optionMs(step, 'deadline');
      return () => native.client_ready(client, deadline, queue, tag);
    });
  },
  watch(world, step) {
    const client = world.use(step, 'client').handle;
    const queue = world.use(step, 'queue').handle;
    const tag = world.tag(step, true);
    const mask = world.number(step, notices, step.operand('a notice').text);
    world.judge(step, () => native.client_watch(client, mask, queue, tag.number));
  },

  // ---- Leases and flights

  fulfil(world, step) {
    const lease = world.use(step, 'lease').handle;
    const value = step.operand('a value');
    const to = step.optional();
    const queue = to ? world.find(step, to.text, 'queue').handle : undefined;
    const tag = to ? world.tag(step, true) : undefined;
    const [ttl, soft] = ['ttl', 'soft_ttl'].map((name) => world.optionMs(step, name));
    const ref = Number(step.option('ref') ?? 0);
    const codec = world.codec(step);
    const absent = !value.quoted && value.text === 'absent';
    const ok = world.judgeNumber(step, 'shared', () => (absent
      ? native.lease_fulfil_absent(lease, ttl, ref, queue, tag?.number)
      : native.lease_fulfil(lease, value.bytes, codec, ttl, soft, ref, queue, tag?.number)));
    if (ok && tag) tag.begun += 1;
  },
  fail(world, step) {
    const lease = world.use(step, 'lease').handle;
    const code = world.number(step, statuses, step.operand('a code').text);
    const text = step.optional()?.bytes.toString();
    const ref = Number(step.option('ref') ?? 0);
    world.judgeNumber(step, 'shared', () => native.lease_fail(lease, code, text, ref));
  },
  detach(world, step) {
    const thing = world.use(step);
    const detach = { lease: native.lease_detach, flight: native.flight_detach }[thing.kind];
    if (!detach) step.bad('cannot be detached:', thing.name);
    const waiters = detach(thing.handle);
    const fails = step.words[step.arrow]?.text === 'fails';
    if ((waiters < 0) !== fails) step.stop(`came ${waiters}`);
    if (!fails) world.judgeNumber(step, 'waiters', () => waiters);
    else while (step.promise());
  },
  state(world, step) {
    const lease = world.use(step, 'lease').handle;
    const wanted = world.number(step, leaseStates, step.operand('a state').text);
    const came = native.lease_state(lease);
    if (came !== wanted) step.stop(`came ${nameIn(leaseStates, came)}`);
  },
  join(world, step) {
    const group = world.use(step, 'group').handle;
    const key = step.operand('a key').bytes;
    const queue = world.use(step, 'queue').handle;
    const tag = world.tag(step, true);
    const [deadline, within] = [world.optionMs(step, 'deadline'), world.within(step)];
    const came = world.judge(step, () => native.group_join(group, key, deadline, within, queue, tag.number));
    if (!came) return;
    const word = step.need(step.promise(), '`lead NAME` or `waits`').text;
    const leads = typeof came.value === 'object';
    if ((word === 'lead') !== leads) step.stop(`came ${leads ? 'the lead' : 'a wait'}`);
    if (leads) {
      const name = step.need(step.promise(), 'a name').text;
      world.name(step, name, 'flight', came.value, { scope: native.flight_scope(came.value) });
    } else {
      tag.op = came.value;
      tag.begun += 1;
    }
  },
  finish(world, step) {
    const flight = world.use(step, 'flight').handle;
    const { code, word } = outcome(step);
    const ref = Number(step.option('ref') ?? 0);
    world.judgeNumber(step, 'shared', () =>
      native.flight_finish(flight, world.number(step, statuses, code), word?.bytes, ref));
  },
  forget(world, step) {
    const group = world.use(step, 'group').handle;
    const key = step.operand('a key').bytes;
    world.judge(step, () => native.group_forget(group, key));
  },
  // Node has no blocking form: a fetch and its load in one step, as getOrLoad does it.
  call(world, step) {
    const cache = world.use(step, 'cache').handle;
    const key = step.operand('a key').bytes;
    const { code, word } = outcome(step);
    const [ttl, deadline] = ['ttl', 'deadline'].map((name) => world.optionMs(step, name));
    const flags = fetchFlags(step);
    const [policy, within] = [world.policy(step), world.within(step)];
    const loading = step.flag('loading');
    let runs = 0;
    const refuse = (why, message) => {
      throw Object.assign(new Error(message), { code: why });
    };
    const came = world.judge(step, () => {
      if (flags & 4) refuse('invalid_argument', 'a refresh needs a queue');
      const queue = native.queue_new(0);
      native.cache_fetch(cache, policy, key, deadline, flags, within, queue, 1);
      const event = drain(queue, Infinity);
      if (event.kind === 'error') refuse(nameIn(statuses, event.status), event.extra[0]);
      if (event.kind !== 'lease') return event;
      runs += 1;
      const lease = event.extra;
      const loaded = { kind: 'value', bytes: word?.bytes, flags: sources.flight, reason: 0, age: 0, ttlLeft: -1, load: 0 };
      if (native.lease_state(lease) !== leaseStates.live) refuse('internal', 'the lease is not live');
      if (code === 'ok') native.lease_fulfil(lease, word.bytes, -1, ttl, undefined, 0, undefined, 0);
      else if (code === 'absent') native.lease_fulfil_absent(lease, ttl, 0, undefined, 0);
      else native.lease_fail(lease, world.number(step, statuses, code), word?.bytes.toString(), 0);
      native.free_handle(lease);
      if (code === 'absent') return { ...loaded, kind: 'absent' };
      return code === 'ok' ? loaded : refuse(code, word?.text ?? '');
    });
    if (came) {
      const kind = step.need(step.promise(), 'value or absent').text;
      world.check(step, came.value.kind === kind, came.value);
      world.checkAnswer(step, came.value, () => step.promise());
    }
    if (runs !== (loading ? 1 : 0)) step.stop(`came ${runs} runs of the loader`);
  },

  // ---- Locks, ticks, ids

  acquire(world, step) {
    const client = world.use(step, 'client').handle;
    const name = step.operand('a name').bytes;
    const options = json(step.operand('the options'));
    begun(world, step, (queue, tag) => {
      const lost = step.option('lost');
      const lossQueue = lost ? world.find(step, lost, 'queue').handle : undefined;
      const [deadline, within] = [world.optionMs(step, 'deadline'), world.within(step)];
      return () =>
        native.lock_acquire(client, name, options, undefined, deadline, within, queue, tag, lossQueue, tag);
    });
  },
  held(world, step) {
    const lock = world.use(step, 'lock').handle;
    const word = step.operand('a state').text;
    const wanted = world.number(step, lockStates, word);
    const state = native.lock_state(lock);
    if (state !== wanted || native.lock_held(lock) !== (word === 'held')) step.stop(`came ${nameIn(lockStates, state)}`);
    const left = step.option('remaining');
    const came = native.lock_remaining_ms(lock);
    if (left !== undefined && came !== world.ms(step, left)) step.stop(`came remaining ${came} ms`);
  },
  later(world, step) {
    const [first, second] = [world.use(step, 'lock').handle, world.use(step, 'lock').handle];
    const fences = [native.lock_fence(first), native.lock_fence(second)];
    if (fences[0] >= fences[1] || native.lock_token(first) === native.lock_token(second)) step.stop(`came fences ${fences}`);
  },
  renew: ofLock((...args) => native.lock_renew(...args)),
  release: ofLock((...args) => native.lock_release(...args)),
  leave(world, step) {
    const lock = world.use(step, 'lock').handle;
    world.judge(step, () => native.lock_leave(lock));
  },
  inspect(world, step) {
    const client = world.use(step, 'client').handle;
    const name = step.operand('a name').bytes;
    begun(world, step, (queue, tag) => {
      const deadline = world.optionMs(step, 'deadline');
      return () => native.lock_inspect(client, name, undefined, deadline, queue, tag);
    });
  },
  tick(world, step) {
    const client = world.use(step, 'client').handle;
    const name = step.operand('a name').bytes;
    const options = json(step.operand('the options'));
    begun(world, step, (queue, tag) => {
      const deadline = world.optionMs(step, 'deadline');
      return () => native.tick_acquire(client, name, options, deadline, queue, tag);
    });
  },
  tick_done(world, step) {
    const tick = world.use(step, 'tick').handle;
    begun(world, step, (queue, tag) => {
      const ok = !step.flag('failed');
      const deadline = world.optionMs(step, 'deadline');
      return () => native.tick_done(tick, ok, deadline, queue, tag);
    });
  },
  once(world, step) {
    const client = world.use(step, 'client').handle;
    const id = step.operand('an id').bytes;
    const ttl = world.ms(step, step.operand('a ttl').text);
    begun(world, step, (queue, tag) => {
      const deadline = world.optionMs(step, 'deadline');
      return () => native.once(client, id, ttl, deadline, queue, tag);
    });
  },

  // ---- Time and judgement

  advance(world, step) {
    const client = world.use(step, 'client').handle;
    const ms = world.ms(step, step.operand('a duration').text);
    world.judge(step, () => native.client_advance(client, ms));
  },
  duration(world, step) {
    const text = step.operand('a text').bytes.toString();
    world.judgeNumber(step, 'ms', () => native.duration_parse(text));
  },
  expect(world, step) {
    const queue = world.use(step, 'queue');
    const tag = world.tag(step, false);
    const kind = step.operand('a kind of event').text;
    if (!(kind in kinds)) step.bad('unknown name', kind);
    const name = step.as();
    const event = world.await(queue, tag, EXPECT_MS);
    if (!event) step.stop(`nothing came${queue.hand.length > 0 ? ` but, for others, ${world.describe(queue.hand[0])}` : ''}`);
    world.check(step, event.kind === kind, event);
    let taken = false;
    switch (kind) {
      case 'value':
      case 'absent':
        world.checkAnswer(step, event, () => step.next(0, step.arrow));
        break;
      case 'lease':
      case 'refresh':
      case 'flight':
        world.checkMs(step, 'load', event.load, event);
      // falls through
      case 'lock':
      case 'tick':
        if (name) world.duty(step, event, name);
        taken = name !== undefined;
        break;
      case 'done':
        world.check(step, event.status === statuses[step.flag('busy') ? 'busy' : 'ok'], event);
        break;
      case 'filled':
        world.check(step, event.status === world.number(step, statuses, step.operand('a code').text), event);
        break;
      case 'revoked':
      case 'lock_lost':
        world.check(step, event.reason === world.number(step, reasons, step.operand('a reason').text), event);
        break;
      case 'notice':
        world.check(step, event.reason === world.number(step, notices, step.operand('a notice').text), event);
        break;
      default:
    }
    if (kind === 'done' || kind === 'error') {
      const reason = step.option('reason');
      if (reason) world.check(step, event.reason === world.number(step, reasons, reason), event);
    }
    if (kind === 'done') world.checkMs(step, 'ttl_left', event.ttlLeft, event);
    const ref = step.option('ref');
    if (ref !== undefined) world.check(step, event.ref === Number(ref), event);
    if (kind === 'error') {
      world.check(step, event.status === world.number(step, statuses, step.operand('a code').text), event);
      world.texts(step, event.extra[0], () => step.next(0, step.arrow));
    }
    if (taken) native.free_handle(event.kept);
    else if (name) world.name(step, name, 'event', event.kept);
    else world.drop(event);
  },
  nothing(world, step) {
    const queue = world.use(step, 'queue');
    if (!step.words.some((word) => !word.used)) {
      if (queue.hand.length > 0 || world.read(queue, NOTHING_MS) === statuses.ok) {
        step.stop(`came ${world.describe(queue.hand[0])}`);
      }
      return;
    }
    const event = world.await(queue, world.tag(step, false), NOTHING_MS);
    if (event) step.stop(`came ${world.describe(event)}`);
  },
  ended(world, step) {
    const queue = world.use(step, 'queue');
    const status = queue.hand.length > 0 ? statuses.ok : world.read(queue, NOTHING_MS);
    if (status === statuses.ok) step.stop(`came ${world.describe(queue.hand[0])}`);
    if (status !== statuses.closed) step.stop(`came ${nameIn(statuses, status)}`);
  },
  stats(world, step) {
    const client = world.use(step, 'client').handle;
    const name = step.operand('a counter').text;
    const relation = step.operand('==, <= or >=').text;
    const wanted = Number(step.operand('a number').text);
    const of = step.option('cache');
    const cache = of ? world.find(step, of, 'cache').handle : undefined;
    for (const until = performance.now() + EXPECT_MS; ; ) {
      const came = JSON.parse(native.client_stats_json(client, cache))[name];
      if (came === undefined) step.bad('no counter', name);
      if (relation === '==' ? came === wanted : relation === '>=' ? came >= wanted : came <= wanted) return;
      if (performance.now() >= until) step.stop(`came ${came}`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2);
    }
  },
};

function ofLock(call) {
  return (world, step) => {
    const lock = world.use(step, 'lock').handle;
    begun(world, step, (queue, tag) => {
      const deadline = world.optionMs(step, 'deadline');
      return () => call(lock, deadline, queue, tag);
    });
  };
}
