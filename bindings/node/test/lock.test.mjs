// SPDX-License-Identifier: MIT

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { connect, LockLostError } from 'stanchion';

import { startRedis } from './support/redis.mjs';
import { onEachStore } from './support/stores.mjs';

onEachStore('locks', (store) => {
  test('one holder at a time, and each grant has a larger fence', async () => {
    const client = store.open();
    let inside = 0;
    const fences = [];
    await Promise.all(Array.from({ length: 20 }, () => client.withLock('one', { ttl: '10s' }, async (lock) => {
      inside += 1;
      assert.equal(inside, 1);
      assert.ok(lock.held);
      fences.push(lock.fence);
      await sleep(1);
      inside -= 1;
    })));
    assert.deepEqual(fences, [...fences].sort((a, b) => a - b));
    assert.equal(new Set(fences).size, 20);
    assert.equal(await client.inspectLock('one'), null);
  });

  test('a try that fails gives null, a wait that is over rejects with busy', async () => {
    const client = store.open();
    const lock = await client.lock('busy', { ttl: '10s', label: 'mine' });
    assert.equal(await client.tryLock('busy', { ttl: '10s' }), null);
    await assert.rejects(client.lock('busy', { ttl: '10s', wait: '20ms' }), { code: 'busy', retryable: true });
    const seen = await client.inspectLock('busy');
    assert.deepEqual([seen.ours, seen.token, seen.fence, seen.label], [true, lock.token, lock.fence, 'mine']);
    await lock.release();
    assert.equal(lock.held, false);
    assert.equal(lock.remainingMs, 0);
    const next = await client.tryLock('busy', { ttl: '10s' });
    assert.ok(next.held);
    await next.release();
    await next.release(); // again: the same answer
  });

  test('without a ttl there is no lock', async () => {
    const client = store.open();
    await assert.rejects(client.lock('x', {}), { code: 'invalid_argument' });
    await assert.rejects(client.lock('x', { ttl: 0 }), { code: 'invalid_argument' });
    await assert.rejects(client.lock('x', { ttl: '10s', wiat: 1 }), { code: 'unknown_option' });
  });

  test('an aborted acquire rejects with the reason, and leaves no key', async () => {
    const client = store.open();
    const other = store.open();
    const lock = await client.lock('left', { ttl: '10s' });
    const reason = new Error('changed my mind');
    const control = new AbortController();
    const waiting = other.lock('left', { ttl: '10s', signal: control.signal });
    await sleep(20);
    control.abort(reason);
    await assert.rejects(waiting, reason);
    await lock.release();
    for (let delay = 0; delay < 20; ++delay) {
      const soon = new AbortController();
      const taking = client.lock('left', { ttl: '10s', signal: soon.signal });
      if (delay % 2 === 0) await Promise.resolve();
      else setTimeout(() => soon.abort(reason), delay / 20);
      if (delay % 2 === 0) soon.abort(reason);
      await taking.then((got) => got.release(), (error) => assert.equal(error, reason));
    }
    for (let i = 0; i < 100 && (await other.inspectLock('left')); ++i) await sleep(10);
    assert.equal(await other.inspectLock('left'), null);
    await assert.rejects(client.lock('left', { ttl: '10s', signal: AbortSignal.abort(reason) }), reason);
  });

  test('the error of a body comes through, and the lock is released', async () => {
    const client = store.open();
    const failure = new Error('the body failed');
    await assert.rejects(client.withLock('body', { ttl: '10s' }, () => { throw failure; }), failure);
    assert.equal(await client.withLock('body', { ttl: '10s', wait: 1000 }, () => 'ran'), 'ran');
  });

  test('max_hold ends a hold, and the signal tells why', async () => {
    const client = store.open();
    const ended = client.withLock('hold', { ttl: '10s', maxHold: '30ms' }, (lock) => new Promise((resolve) => {
      lock.signal.addEventListener('abort', () => resolve([lock.held, lock.signal.reason]));
    }));
    await assert.rejects(ended, (error) => error instanceof LockLostError && error.reason === 'max_hold');
    let seen;
    await client.withLock('hold', { ttl: '10s', maxHold: '30ms' }, async (lock) => {
      await sleep(100);
      seen = [lock.held, lock.signal.aborted, lock.signal.reason.reason];
      throw new Error('mine');
    }).catch((error) => assert.equal(error.message, 'mine'));
    assert.deepEqual(seen, [false, true, 'max_hold']);
  });

  test('closing the client releases its locks, and says so', async () => {
    const client = store.open();
    const lock = await client.lock('closing', { ttl: '10s' });
    const { signal } = lock;
    await client.close();
    assert.equal(lock.held, false);
    assert.equal(signal.reason.reason, 'closed');
    await assert.rejects(lock.release(), { code: 'lost' });
    assert.ok(await store.open().tryLock('closing', { ttl: '10s' }));
  });

  test('await using releases and never throws', async () => {
    const client = store.open();
    const lock = await client.lock('using', { ttl: '10s' });
    await lock[Symbol.asyncDispose]();
    assert.equal(lock.held, false);
    await lock[Symbol.asyncDispose]();
  });

  test('a slot of a tick runs once, whoever asks', async () => {
    const [a, b] = [store.open(), store.open()];
    const runs = [];
    const body = (run) => runs.push(run.slot);
    const all = await Promise.all([a, b, a, b].map((client) => client.tick('nightly', { every: '24h' }, body)));
    assert.equal(runs.length, 1);
    assert.equal(runs[0] % 86_400_000, 0);
    assert.equal(all.filter((result) => result.ran).length, 1);
    assert.ok(all.filter((result) => !result.ran).every((result) => /taken|still_running/.test(result.reason)));
    assert.deepEqual(await b.tick('nightly', { every: '24h' }, body), { ran: false, reason: 'taken', value: undefined });
  });

  test('a run that fails gives its slot back, and its error comes through', async () => {
    const client = store.open();
    const failure = new Error('no disk');
    await assert.rejects(client.tick('again', { every: '1h' }, () => { throw failure; }), failure);
    const second = await client.tick('again', { every: '1h' }, () => 'done');
    assert.deepEqual(second, { ran: true, reason: undefined, value: 'done' });
  });

  test('an id is claimed once', async () => {
    const [a, b] = [store.open(), store.open()];
    const all = await Promise.all([a, b, a, b].map((client) => client.once('order-7', { ttl: '1m' })));
    assert.equal(all.filter(Boolean).length, 1);
    await a.once('short', { ttl: 10 });
    await sleep(60);
    assert.equal(await b.once('short', { ttl: 10 }), true);
  });
});

test('a test can move the clock of a store', async () => {
  const client = connect('memory://?clock=manual');
  const cache = client.cache('c', { ttl: '5m', jitter: 0 });
  await cache.set('k', 1);
  client.advance('4m');
  assert.equal(await cache.get('k'), 1);
  client.advance('61s');
  assert.equal(await cache.get('k'), undefined);
  assert.throws(() => connect().advance('1s'), { code: 'unsupported' });
});

test('a client that is closed refuses work, and closing again is the same close', async () => {
  const client = connect();
  const cache = client.cache('c', { ttl: '5m' });
  await Promise.all([client.close(), client.close(), client[Symbol.asyncDispose]()]);
  await assert.rejects(cache.getOrLoad('k', () => 1), { code: 'closed' });
  await assert.rejects(client.lock('l', { ttl: '1s' }), { code: 'closed' });
  assert.throws(() => client.cache('d'), { code: 'closed' });
});

test('an aborted wait ends in the core too, however many clients the process has opened', async () => {
  for (let opened = 0; opened < 40; ++opened) {
    const client = connect();
    await client.lock('l', { ttl: '10s' });
    const group = client.group();
    group.do('k', () => new Promise(() => {})).catch(() => {});
    const control = new AbortController();
    const { signal } = control;
    const calls = [client.lock('l', { ttl: '10s', signal }), group.do('k', () => 1, { signal })];
    control.abort();
    await Promise.allSettled(calls);
    assert.equal(client.stats().cancelled, 2);
    await client.close({ wait: 0 });
  }
});

test('every call that is aborted rejects with the reason of its signal', async () => {
  const redis = await startRedis();
  const client = connect(redis.url, { commandTimeout: '2s' });
  const cache = client.cache('c', { ttl: '5m' });
  const group = client.group();
  await client.lock('held', { ttl: '10s' });
  group.do('busy', () => new Promise(() => {})).catch(() => {});
  const calls = {
    getOrLoad: (signal) => cache.getOrLoad('k', () => new Promise(() => {}), { signal }),
    'getOrLoad with a fallback': (signal) => cache.getOrLoad('l', () => new Promise(() => {}), { signal, fallback: 1 }),
    get: (signal) => cache.get('k', { signal }),
    lookup: (signal) => cache.lookup('k', { signal }),
    set: (signal) => cache.set('k', 1, { signal }),
    invalidate: (signal) => cache.invalidate('k', { signal }),
    do: (signal) => group.do('busy', () => 1, { signal }),
    call: (signal) => group.call('free', () => new Promise(() => {}), { signal }),
    lock: (signal) => client.lock('held', { ttl: '10s', signal }),
    tryLock: (signal) => client.tryLock('other', { ttl: '10s', signal }),
    withLock: (signal) => client.withLock('held', { ttl: '10s', signal }, () => 1),
    inspectLock: (signal) => client.inspectLock('held', { signal }),
    tick: (signal) => client.tick('t', { every: '1h', signal }, () => 1),
    once: (signal) => client.once('id', { ttl: '1m', signal }),
  };
  await redis.command('CLIENT', 'PAUSE', '60000', 'ALL');
  for (const [name, call] of Object.entries(calls)) {
    const reason = new Error(name);
    await assert.rejects(call(AbortSignal.abort(reason)), reason);
    const control = new AbortController();
    const late = call(control.signal);
    setTimeout(() => control.abort(reason), 5);
    await assert.rejects(late, reason);
  }
  const away = connect('redis://127.0.0.1:1');
  const reason = new Error('ready');
  const control = new AbortController();
  const waiting = away.ready({ wait: '10s', signal: control.signal });
  control.abort(reason);
  await assert.rejects(waiting, reason);
  await Promise.all([away.close({ wait: 0 }), client.close({ wait: 0 })]);
  await redis.stop();
});

test('offset moves the slots of a tick, and atMost ends a run that says nothing', async () => {
  const client = connect('memory://?clock=manual');
  const nightly = { every: '24h', offset: '2h' };
  const { value: slot } = await client.tick('nightly', nightly, (run) => run.slot);
  assert.equal(slot % 86_400_000, 2 * 3_600_000);
  client.advance('24h');
  assert.equal((await client.tick('nightly', nightly, (run) => run.slot)).value, slot + 86_400_000);
  const options = { every: '1h', atMost: '90m' };
  let end;
  const hung = client.tick('hung', options, () => new Promise((resolve) => (end = resolve)));
  while (!end) await sleep(1);
  client.advance('1h');
  assert.deepEqual(await client.tick('hung', options, () => 1), { ran: false, reason: 'still_running', value: undefined });
  client.advance('1h');
  assert.equal((await client.tick('hung', options, () => 1)).ran, true);
  end();
  assert.equal((await hung).ran, true);
});

test('a close with loads in flight answers everybody', async () => {
  const client = connect();
  const cache = client.cache('c', { ttl: '5m' });
  const hung = Array.from({ length: 5 }, () => cache.getOrLoad('k', () => new Promise(() => {})));
  const fine = cache.getOrLoad('fine', async () => (await sleep(20), 'loaded'));
  const all = Promise.allSettled(hung);
  await client.close({ wait: 100 });
  assert.ok((await all).every((result) => result.reason.code === 'closed'));
  assert.equal(await fine, 'loaded');
});
