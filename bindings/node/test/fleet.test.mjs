// SPDX-License-Identifier: MIT
//
// A fleet of Node and C: one lease, one lock, one value. The C program is compiled here, against the shared library that
// `STN_LIBRARY` names (default: that of the preset release).

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import { connect } from 'stanchion';

import { packageFolder } from './support/child.mjs';
import { startRedis } from './support/redis.mjs';

const exec = promisify(execFile);
const root = path.join(packageFolder, '../..');
const library = process.env.STN_LIBRARY ?? path.join(root, 'build/release/capi/libstanchion.so');
let folder;
let redis;
let client;

before(async () => {
  redis = await startRedis();
  client = connect(redis.url);
  folder = await mkdtemp(path.join(tmpdir(), 'stanchion-fleet-'));
  await exec('cc', ['-std=c99', '-I', path.join(root, 'capi/include'), path.join(packageFolder, 'test/support/fleet.c'), library,
    `-Wl,-rpath,${path.dirname(library)}`, '-o', path.join(folder, 'fleet')]);
});
after(async () => {
  await client.close();
  await redis.stop();
  await rm(folder, { recursive: true });
});
const inC = (...args) => exec(path.join(folder, 'fleet'), [redis.url, ...args.map(String)]);

test('Node and C on one cold key make one load, and both have its value', async () => {
  const cache = client.cache('mixed', { ttl: '5m' });
  for (let round = 0; round < 6; ++round) {
    let runs = 0;
    const mine = async () => {
      if (round % 2 === 1) await sleep(30); // now this one is first, now that
      return cache.getOrLoad('mixed', async () => {
        runs += 1;
        await sleep(200);
        return 'from Node';
      });
    };
    const [value, theirs] = await Promise.all([mine(), inC('load', 200)]);
    const [, theirRuns, theirValue] = /^(\d) (.*)\n$/.exec(theirs.stdout);
    assert.equal(runs + Number(theirRuns), 1);
    assert.equal(JSON.parse(theirValue), value);
    await cache.invalidate('mixed');
  }
});

test('a value that C has stored is a hit here', async () => {
  assert.equal((await inC('load', 1)).stdout, '1 "from C"\n');
  assert.equal(await client.cache('mixed', { ttl: '5m' }).getOrLoad('mixed', () => 'mine'), 'from C');
});

test('one lock: each waits for the other, and fences increase', async () => {
  const holder = spawn(path.join(folder, 'fleet'), [redis.url, 'lock', '300']);
  const [line] = await once(holder.stdout, 'data');
  assert.equal(await client.tryLock('mixed', { ttl: '10s' }), null);
  const lock = await client.lock('mixed', { ttl: '10s' });
  assert.ok(lock.fence > Number(line));
  const theirs = inC('lock', 1);
  await sleep(100);
  assert.equal(lock.held, true);
  await lock.release();
  assert.ok(Number((await theirs).stdout) > lock.fence);
});
