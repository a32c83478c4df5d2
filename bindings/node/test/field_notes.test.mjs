// SPDX-License-Identifier: MIT
//
// What bit other people. Each test stands for a public report against a library that does the same job.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { connect } from 'stanchion';

import { run, runWell } from './support/child.mjs';
import { startRedis } from './support/redis.mjs';
import { onEachStore, source } from './support/stores.mjs';

const block = (ms) => {
  for (const until = performance.now() + ms; performance.now() < until; );
};

onEachStore('field notes', (store) => {
  test('the event loop is blocked for three times the ttl: the lock stays held, and says so', async () => {
    const lock = await store.open().lock('blocked', { ttl: 300 });
    block(900);
    assert.equal(lock.held, true);
    await sleep(10);
    assert.equal(lock.held, true);
    assert.equal(lock.signal.aborted, false);
    assert.equal(await store.open().tryLock('blocked', { ttl: 300 }), null);
    await lock.release();
  });

  test('a lock that is not renewed is not held when its ttl is over, even while the event loop is blocked', async () => {
    const lock = await store.open().lock('unrenewed', { ttl: 100, renew: false });
    assert.equal(lock.held, true);
    block(150);
    assert.equal(lock.held, false);
    await lock.release().catch((error) => assert.equal(error.code, 'lost'));
    assert.equal(lock.signal.reason?.reason ?? 'expired', 'expired');
  });

  test('a delete during a load is not overwritten by its result', async () => {
    const [a, b] = [store.open(), store.open()];
    const there = a.cache('deleted', { ttl: '5m' });
    const here = b.cache('deleted', { ttl: '5m' });
    let release;
    const loading = there.getOrLoad('k', () => new Promise((resolve) => (release = resolve)));
    while (!release) await sleep(1);
    await here.invalidate('k');
    release('old');
    assert.equal(await loading, 'old');
    await sleep(50);
    assert.equal(await here.get('k'), undefined);
    assert.equal(await there.getOrLoad('k', () => 'new'), 'new');
  });

  test('callers who joined before a delete get the value that was being loaded', async () => {
    const cache = store.open().cache('joined', { ttl: '5m' });
    const load = source('loaded', 60);
    const all = Array.from({ length: 5 }, () => cache.getOrLoad('k', load));
    await sleep(20);
    await store.open().cache('joined', { ttl: '5m' }).invalidate('k');
    assert.ok((await Promise.all(all)).every((value) => value === 'loaded'));
    assert.equal(load.runs, 1);
  });

  test('the loader is told when the last of those who joined him goes, not before', async () => {
    const cache = store.open().cache('leaving', { ttl: '5m' });
    const controls = [1, 2, 3].map(() => new AbortController());
    let signal;
    const load = (context) => ((signal = context.signal), sleep(5000, undefined, { signal }).catch(() => {}));
    const calls = controls.map((control) => cache.getOrLoad('k', load, { signal: control.signal }));
    while (!signal) await sleep(1);
    for (const [i, control] of controls.entries()) {
      assert.equal(signal.aborted, false);
      control.abort();
      await assert.rejects(calls[i], { name: 'AbortError' });
    }
    for (let i = 0; i < 200 && !signal.aborted; ++i) await sleep(5);
    assert.equal(signal.reason.code, 'cancelled');
  });

  test('20 callers on a failing loader: one run, one error for all, about the time of one load', async () => {
    const cache = store.open().cache('failing', { ttl: '5m' });
    const failure = new Error('the source is away');
    const load = source(() => { throw failure; }, 100);
    const began = performance.now();
    const all = await Promise.allSettled(Array.from({ length: 20 }, () => cache.getOrLoad('k', load)));
    assert.equal(load.runs, 1);
    assert.ok(all.every((result) => result.reason === failure));
    assert.ok(performance.now() - began < 1000);
  });

  test('the leader is aborted: the oldest waiter is served, by the one load', async () => {
    const cache = store.open().cache('leader', { ttl: '5m' });
    const control = new AbortController();
    const load = source('value', 60);
    const leader = cache.getOrLoad('k', load, { signal: control.signal });
    const others = Array.from({ length: 10 }, () => cache.getOrLoad('k', load));
    await sleep(20);
    control.abort(new Error('gone'));
    await assert.rejects(leader, { message: 'gone' });
    assert.ok((await Promise.all(others)).every((value) => value === 'value'));
    assert.equal(load.runs, 1);
  });

  test('aborting one of five waiters touches one', async () => {
    const cache = store.open().cache('five', { ttl: '5m' });
    const control = new AbortController();
    const load = source('value', 60);
    const calls = [0, 1, 2, 3, 4].map((i) => cache.getOrLoad('k', load, i === 2 ? { signal: control.signal } : {}));
    await sleep(20);
    control.abort();
    const all = await Promise.allSettled(calls);
    assert.deepEqual(all.map((result) => result.status),
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
    assert.equal(all[2].reason.name, 'AbortError');
    assert.equal(load.runs, 1);
  });

  test('the only caller is aborted: the loader is told, and the next caller loads at once', async () => {
    const cache = store.open().cache('only', { ttl: '5m' });
    const control = new AbortController();
    let began;
    let told;
    const hung = cache.getOrLoad('k', ({ signal }) => new Promise((resolve) => {
      began = true;
      signal.addEventListener('abort', () => (told = signal.reason, resolve('late')));
    }), { signal: control.signal });
    while (!began) await sleep(1);
    control.abort();
    await assert.rejects(hung, { name: 'AbortError' });
    assert.equal(told.code, 'cancelled');
    assert.equal(await cache.getOrLoad('k', () => 'mine', { wait: 2000 }), 'mine');
  });

  test('an abort by the loader itself, or between the grant and the loader, rejects at once', async () => {
    const cache = store.open().cache('gap', { ttl: '5m' });
    const group = store.open().group();
    for (const call of [cache.getOrLoad.bind(cache), group.do.bind(group)]) {
      const control = new AbortController();
      let told;
      const load = ({ signal }) => {
        control.abort(new Error('mine'));
        return sleep(1000, undefined, { signal }).catch(() => (told = signal.reason.code));
      };
      await assert.rejects(call('k', load, { signal: control.signal }), { message: 'mine' });
      await sleep(1);
      assert.equal(told, 'cancelled');
    }
  });

  test('a loader that asks for its own key is told at once, through any number of loads', async () => {
    const cache = store.open().cache('circle', { ttl: '5m' });
    const circle = cache.getOrLoad('a', async () => {
      await sleep(1);
      return cache.getOrLoad('b', async () => cache.getOrLoad('a', () => 1));
    });
    await assert.rejects(circle, { code: 'would_deadlock' });
    assert.equal(await cache.getOrLoad('c', () => cache.getOrLoad('d', () => 2)), 2);
  });

  test('a hung loader is given up on after maxLoad, and another may load', async () => {
    const cache = store.open().cache('hung', { ttl: '5m', maxLoad: 50 });
    let signal;
    const hung = [1, 2].map(() => cache.getOrLoad('k', (context) => ((signal = context.signal), new Promise(() => {}))));
    assert.ok((await Promise.allSettled(hung)).every((result) => result.reason.code === 'timeout'));
    assert.equal(signal.aborted, true);
    assert.equal(await cache.getOrLoad('k', () => 'mine'), 'mine');
  });

  test('a fallback answers when the value cannot be had, never for an abort or a mistake', async () => {
    const cache = store.open().cache('fallback', { ttl: '5m', errorTtl: 0 });
    const slow = cache.getOrLoad('k', source('value', 60));
    assert.equal(await cache.getOrLoad('k', () => 1, { wait: 5, fallback: 'spare' }), 'spare');
    assert.equal(await cache.getOrLoad('f', () => { throw new Error('no'); }, { fallback: async () => 'made' }), 'made');
    const control = new AbortController();
    const aborted = cache.getOrLoad('k', () => 1, { fallback: 'spare', signal: control.signal });
    control.abort();
    await assert.rejects(aborted, { name: 'AbortError' });
    await assert.rejects(cache.getOrLoad('', () => 1, { fallback: 'spare' }), { code: 'invalid_argument' });
    assert.equal(await slow, 'value');
  });
});

test('the loader is told that its lease is gone, and its caller has the value all the same', async () => {
  const redis = await startRedis();
  const client = connect(redis.url);
  const cache = client.cache('c', { ttl: '5m', lease: '200ms' });
  let told;
  const loading = cache.getOrLoad('k', async ({ signal }) => {
    await redis.command('DEL', 'stn:v:c:{k}');
    await sleep(5000, undefined, { signal }).catch(() => {});
    told = signal.reason;
    return 'value';
  });
  assert.equal(await loading, 'value');
  assert.equal(told.code, 'lost');
  await client.close();
  assert.deepEqual(await redis.keys(':v:c:'), []);
  await redis.stop();
});

test('the store comes back, and clients with it', async () => {
  const redis = await startRedis();
  const client = connect(redis.url);
  const cache = client.cache('back', { ttl: '5m' });
  await cache.set('k', 'old');
  await redis.stop();
  assert.equal(await cache.getOrLoad('k', () => 'from the source'), 'from the source');
  const again = await startRedis({ port: redis.port });
  await client.ready({ wait: '20s' });
  await cache.set('k', 'new');
  assert.equal(await cache.get('k'), 'new');
  await client.close();
  await again.stop();
});

test('waits take no thread of the pool that files and names need, and need none', async () => {
  const end = await runWell(`
    import { pbkdf2 } from 'node:crypto';
    import { lookup } from 'node:dns/promises';
    import { readFile } from 'node:fs/promises';
    import { connect } from 'stanchion';
    const client = connect();
    await client.lock('l', { ttl: '10s' });
    const leave = new AbortController();
    const waits = Array.from({ length: 50 }, () => client.lock('l', { ttl: '10s', signal: leave.signal }).catch(() => 'left'));
    await Promise.all([readFile(process.execPath + '/../../../etc/hostname').catch(() => {}), lookup('127.0.0.1')]);
    leave.abort();
    if (!(await Promise.all(waits)).every((end) => end === 'left')) throw new Error('a wait was over too early');
    let busy = true;
    pbkdf2('a', 'b', 3e6, 64, 'sha512', () => (busy = false)); // the pool's one thread has work for seconds
    const cache = client.cache('c', { ttl: '5m' });
    for (let i = 0; i < 100; ++i) await cache.getOrLoad('k' + i, () => i);
    console.log(busy);
    process.exit(0);
  `, { env: { UV_THREADPOOL_SIZE: '1' } });
  assert.equal(end.out, 'true\n');
});

test('a client that was closed with calls in flight uses no processor', async () => {
  const redis = await startRedis();
  const client = connect(redis.url);
  await client.lock('l', { ttl: '10s' });
  const cache = client.cache('c', { ttl: '5m' });
  const calls = Array.from({ length: 20 }, (_, i) => [client.lock('l', { ttl: '10s' }), cache.getOrLoad(`k${i}`, () => new Promise(() => {}))]);
  const all = Promise.allSettled(calls.flat());
  await sleep(50);
  await client.close({ wait: 0 });
  assert.ok((await all).every((end) => end.reason.code === 'closed'));
  const before = process.cpuUsage();
  await sleep(500);
  const { user, system } = process.cpuUsage(before);
  assert.ok(user + system < 250_000, `${user + system} us in 500 ms`);
  await redis.stop();
});

test('a lock that somebody deletes is told as lost, once, with the reason', async () => {
  const redis = await startRedis();
  const client = connect(redis.url);
  const lock = await client.lock('deleted', { ttl: 600 });
  let told = 0;
  lock.signal.addEventListener('abort', () => (told += 1));
  await redis.command('DEL', 'stn:k:{deleted}');
  for (let i = 0; i < 200 && told === 0; ++i) await sleep(10);
  assert.equal(lock.held, false);
  assert.equal(lock.signal.reason.reason, 'deleted');
  await assert.rejects(lock.release(), { code: 'lost' });
  const stolen = await client.lock('stolen', { ttl: 600 });
  await redis.command('SET', 'stn:k:{stolen}', 'somebody', 'PX', '10000');
  for (let i = 0; i < 200 && !stolen.signal.aborted; ++i) await sleep(10);
  assert.equal(stolen.signal.reason.reason, 'stolen');
  await client.close();
  assert.match(await redis.command('GET', 'stn:k:{stolen}'), /somebody/);
  await redis.stop();
});

test('the store goes away: loads go on, nobody hangs, and writes say so', async () => {
  const redis = await startRedis();
  const client = connect(redis.url);
  const cache = client.cache('away', { ttl: '5m' });
  await client.ready();
  await redis.stop();
  const load = source('value', 5);
  const all = await Promise.all(Array.from({ length: 50 }, () => cache.getOrLoad('k', load)));
  assert.ok(all.every((value) => value === 'value'));
  assert.equal(load.runs, 1);
  await assert.rejects(cache.set('k', 1), (error) => ['unavailable', 'timeout', 'uncertain'].includes(error.code));
  await assert.rejects(client.lock('l', { ttl: '1s', wait: 100 }),
    (error) => ['unavailable', 'uncertain', 'timeout'].includes(error.code));
  await client.close({ wait: 0 });
});

test('an idle client lets the process exit at once, with a store and without', async () => {
  for (const url of ['memory://', 'redis://127.0.0.1:1']) {
    const end = await runWell(`
      import { connect } from 'stanchion';
      const client = connect(process.argv[1]);
      client.cache('c', { ttl: '5m' });
      const lock = process.argv[1].startsWith('memory') && await client.lock('held', { ttl: '10s' });
      globalThis.began = performance.now();
      process.on('exit', () => console.log(Math.round(performance.now() - began)));
    `, { args: [url] });
    assert.ok(Number(end.out) < 1000, end.out);
  }
});

test('a pending operation keeps the process alive until it has its answer', async () => {
  const end = await runWell(`
    import { connect } from 'stanchion';
    const client = connect();
    const first = await client.lock('l', { ttl: '10s', maxHold: '150ms' });
    console.log((await client.lock('l', { ttl: '10s' })).held);
  `);
  assert.equal(end.out, 'true\n');
});

test('a rejected background load is no unhandled rejection', async () => {
  const end = await run(`
    import { connect } from 'stanchion';
    import { setTimeout as sleep } from 'node:timers/promises';
    const cache = connect().cache('c', { ttl: '5m', softTtl: '4m', errorTtl: 0 });
    const boom = async () => { await sleep(20); throw new Error('boom'); };
    const control = new AbortController();
    const leader = cache.getOrLoad('a', boom, { signal: control.signal }).catch(() => {});
    const other = cache.getOrLoad('a', boom).catch(() => {});
    await sleep(5);
    control.abort();
    await Promise.all([leader, other]);
    const alone = new AbortController();
    const only = cache.getOrLoad('b', boom, { signal: alone.signal }).catch(() => {});
    await sleep(5);
    alone.abort();
    await only;
    await cache.set('c', 1);
    await cache.invalidate('c', { stale: true });
    await cache.getOrLoad('c', boom);
    await sleep(100);
    console.log('fine');
  `);
  assert.equal(end.code, 0, end.err);
  assert.equal(end.out, 'fine\n');
});
