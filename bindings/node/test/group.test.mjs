// SPDX-License-Identifier: MIT

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { connect } from 'stanchion';

import { runWell } from './support/child.mjs';
import { source } from './support/stores.mjs';

const client = connect();

test('callers of one key share one run and its very result', async () => {
  const group = client.group();
  const run = source(() => ({ pdf: true }));
  const all = await Promise.all(Array.from({ length: 100 }, () => group.call('report', run)));
  assert.equal(run.runs, 1);
  assert.equal(new Set(all.map((result) => result.value)).size, 1);
  assert.ok(all.every((result) => result.shared));
  assert.deepEqual(await group.call('alone', () => 1), { value: 1, shared: false });
});

test('nothing is stored: the next caller begins a run of his own', async () => {
  const group = client.group();
  const run = source(() => run.runs, 1);
  assert.equal(await group.do('k', run), 1);
  assert.equal(await group.do('k', run), 2);
});

test('undefined is a result like any other', async () => {
  const group = client.group();
  const all = await Promise.all([1, 2, 3].map(() => group.call('k', () => sleep(10))));
  assert.ok(all.every((result) => result.value === undefined && result.shared));
});

test('everybody who joined gets the very error', async () => {
  const group = client.group();
  const failure = new TypeError('no');
  const all = await Promise.allSettled([1, 2, 3].map(() => group.do('k', async () => {
    await sleep(10);
    throw failure;
  })));
  assert.ok(all.every((result) => result.reason === failure));
});

test('what is thrown need not be an error', async () => {
  const group = client.group();
  for (const thrown of [undefined, null, 0, 'text', Symbol('s'), Object.create(null)]) {
    const all = await Promise.allSettled([1, 2].map(() => group.do('k', async () => {
      await sleep(5);
      throw thrown;
    })));
    assert.ok(all.every((result) => result.status === 'rejected' && result.reason === thrown));
  }
});

test('forget lets the next caller begin anew, while those who joined are served', async () => {
  const group = client.group();
  const slow = source(() => 'old', 50);
  const first = group.do('k', slow);
  const joined = group.do('k', slow);
  group.forget('k');
  assert.equal(await group.do('k', () => 'new'), 'new');
  assert.deepEqual(await Promise.all([first, joined]), ['old', 'old']);
});

test('the run keeps the async context of the caller who leads', async () => {
  const request = new AsyncLocalStorage();
  const group = client.group();
  assert.equal(await request.run('mine', () => group.do('k', async () => {
    await sleep(1);
    return request.getStore();
  })), 'mine');
});

test('a circle of runs is told at once', async () => {
  const group = client.group();
  const circle = group.do('a', () => group.do('b', () => group.do('a', () => 1)));
  await assert.rejects(circle, { code: 'would_deadlock' });
});

test('a caller who goes disturbs nobody: the run ends for the others', async () => {
  const group = client.group();
  const control = new AbortController();
  let aborted = false;
  const run = async ({ signal }) => {
    signal.addEventListener('abort', () => (aborted = true));
    await sleep(40);
    return 'done';
  };
  const leader = group.do('k', run, { signal: control.signal });
  const other = group.do('k', run);
  await sleep(5);
  control.abort(new Error('gone'));
  await assert.rejects(leader, { message: 'gone' });
  assert.equal(await other, 'done');
  assert.equal(aborted, false);
});

test('a run that nobody waits for is told so', async () => {
  const group = client.group();
  const control = new AbortController();
  const told = new Promise((resolve) => {
    const run = async ({ signal }) => {
      signal.addEventListener('abort', () => resolve(signal.reason));
      await sleep(1000, undefined, { signal }).catch(() => {});
    };
    group.do('k', run, { signal: control.signal }).catch(() => {});
  });
  await sleep(5);
  control.abort();
  assert.equal((await told).code, 'cancelled');
});

test('a waiter has a deadline of his own', async () => {
  const group = client.group();
  const slow = source('done', 60);
  const leader = group.do('k', slow);
  await assert.rejects(group.do('k', slow, { wait: 10 }), { code: 'timeout', retryable: true });
  await assert.rejects(group.do('k', slow, { signal: AbortSignal.timeout(10) }), { name: 'TimeoutError' });
  assert.equal(await leader, 'done');
});

test('a close ends runs that hang: everybody gets `closed`, and the process ends', async () => {
  const end = await runWell(`
    import { connect } from 'stanchion';
    const client = connect();
    const group = client.group();
    let signal;
    const calls = [1, 2].map(() => group.do('k', (context) => ((signal = context.signal), new Promise(() => {}))));
    const all = Promise.allSettled(calls);
    setTimeout(() => client.close({ wait: 10 }), 10);
    console.log((await all).map((result) => result.reason.code).join(), signal.reason.code);
  `, { timeout: 10_000 });
  assert.equal(end.out, 'closed,closed closed\n');
});

test('a run that ends before a close gives up on it has its value', async () => {
  const one = connect();
  const run = one.group().do('k', async () => (await sleep(50), 'ran'));
  await one.close({ wait: '5s' });
  assert.equal(await run, 'ran');
});

test('while no load runs, promises cost what they cost without this package, and dead-locks are found all the same', async () => {
  const end = await runWell(`
    import { executionAsyncId } from 'node:async_hooks';
    import { connect } from 'stanchion';
    const followed = async () => {
      await undefined;
      const before = executionAsyncId();
      await undefined;
      return before !== executionAsyncId(); // each promise has a number
    };
    const client = connect();
    const cache = client.cache('c', { ttl: '5m' });
    for (const key of ['a', 'b']) {
      if (await followed()) throw new Error('promises are followed before ' + key);
      const error = await cache.getOrLoad(key, () => cache.getOrLoad(key, () => 1)).catch((thrown) => thrown);
      if (error.code !== 'would_deadlock') throw error;
    }
    if (await cache.getOrLoad('c', followed) !== true) throw new Error('a load is not followed');
    if (await followed()) throw new Error('promises are followed after all');
    await client.close();
    console.log('fine');
  `);
  assert.equal(end.out, 'fine\n');
});
