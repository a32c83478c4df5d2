// SPDX-License-Identifier: MIT

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { connect, LockLostError } from 'stanchion';

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
