// SPDX-License-Identifier: MIT
//
// A million operations of every kind leave nothing behind: neither memory nor handles.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runWell } from './support/child.mjs';
import { startRedis } from './support/redis.mjs';

// Warms up, measures, goes on, and measures again.
async function flat(url, warm, first, more) {
  const end = await runWell(`
    import { connect } from 'stanchion';
    const client = connect(process.argv[1]);
    const cache = client.cache('c', { ttl: '5m', softTtl: '4m', errorTtl: 0 });
    const group = client.group();
    const failure = new Error('no');
    const never = new AbortController();
    let aborts = 0;
    async function cycle(i) {
      const key = 'k' + (i % 500);
      switch (i % 25) {
        case 0: return cache.invalidate(key);
        case 1: return cache.getOrLoad('f' + key, () => { throw failure; }).catch(() => {});
        case 2: return group.do(key, () => i);
        case 3: return client.withLock(key, { ttl: '10s' }, () => {}).catch(() => {});
        case 4: return cache.set(key, { i });
        case 5: {
          const control = new AbortController();
          const call = cache.getOrLoad('a' + i, () => i, { signal: control.signal }).catch(() => (aborts += 1));
          control.abort();
          return call;
        }
        case 6: return client.once('id' + i, { ttl: 1 });
        case 7: return cache.lookup(key);
        case 8: return cache.getOrLoad(key, () => ({ i }), { signal: never.signal });
        case 9: return cache.getOrLoad('m' + i, () => 'x'.repeat(100), { ttl: 1 });
        default: return cache.getOrLoad(key, () => ({ i }));
      }
    }
    async function run(n) {
      let i = 0;
      await Promise.all(Array.from({ length: 200 }, async () => { while (i < n) await cycle(i++); }));
      for (let j = 0; j < 5; ++j) { gc(); await new Promise(setImmediate); }
      const { rss, heapUsed } = process.memoryUsage();
      return { rss: rss / 1e6, heap: heapUsed / 1e6, handles: process.getActiveResourcesInfo().length };
    }
    await run(${warm});
    const before = await run(${first});
    const after = await run(${more});
    await client.close();
    console.log(JSON.stringify({ before, after, aborts }));
  `, { flags: ['--expose-gc', '--max-semi-space-size=8'], timeout: 200_000, args: [url] });
  const { before, after, aborts } = JSON.parse(end.out);
  assert.ok(aborts > (warm + first + more) / 40);
  assert.ok(after.heap - before.heap < 3, end.out);
  assert.ok(after.rss - before.rss < 40, end.out);
  assert.equal(after.handles, before.handles);
}

test('a million operations leave memory, handles and listeners as they were', () => flat('memory://', 200_000, 100_000, 700_000));

test('so do those over Redis', async () => {
  const redis = await startRedis();
  await flat(redis.url, 100_000, 50_000, 200_000);
  await redis.stop();
});
