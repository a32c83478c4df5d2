// SPDX-License-Identifier: MIT
//
// A fleet of Node, C and Python: one lease, one lock, one value. The C program is compiled here, against the shared
// library that `STN_LIBRARY` names (default: that of the preset release); `STN_PYTHON` names a Python that has the package.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
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
const installed = path.join(root, 'build/py-installed/bin/python');
const python = process.env.STN_PYTHON ?? (existsSync(installed) ? installed : 'python3');
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

/** A member of the fleet: `first` settles with its first line, `all` with all of them when it has ended well. */
function begin(language, ...args) {
  const [file, ...before] = language === 'C' ? [path.join(folder, 'fleet')] : [python, path.join(packageFolder, 'test/support/fleet.py')];
  const child = spawn(file, [...before, redis.url, ...args.map(String)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (data) => (out += data));
  const all = once(child, 'close').then(([code]) => {
    assert.equal(code, 0, `${language} ended with ${code}`);
    return out.trim().split('\n');
  });
  const first = Promise.race([once(child.stdout, 'data').then(() => out.trim()), all.then(() => out.trim())]);
  return { first, all };
}

/** The same for this process. */
function beginHere(cache, ms) {
  let runs = 0;
  let loading;
  const first = new Promise((resolve) => (loading = resolve));
  const all = cache.getOrLoad('mixed', async () => {
    runs += 1;
    loading('loading');
    await sleep(ms);
    return 'from Node';
  }).then((value) => [`${runs} ${JSON.stringify(value)}`]);
  return { first, all };
}

const languages = ['Node', 'C', 'Python'];

test('Node, C and Python on one cold key make one load, whoever is first, and all have its value', async () => {
  const cache = client.cache('mixed', { ttl: '5m' });
  const load = (language) => (language === 'Node' ? beginHere(cache, 600) : begin(language, 'load', 600));
  for (const leader of languages) {
    const leads = load(leader);
    assert.equal(await leads.first, 'loading');
    const others = languages.filter((language) => language !== leader).map(load);
    const ends = await Promise.all([leads, ...others].map(async (member) => (await member.all).at(-1)));
    assert.deepEqual(ends, [`1 "from ${leader}"`, `0 "from ${leader}"`, `0 "from ${leader}"`]);
    assert.equal(await cache.get('mixed'), `from ${leader}`);
    await cache.invalidate('mixed');
  }
});

test('a value that one of them has stored is a hit for the others', async () => {
  const cache = client.cache('mixed', { ttl: '5m' });
  for (const writer of languages) {
    if (writer === 'Node') await cache.set('mixed', 'from Node');
    else await begin(writer, 'load', 1).all;
    const here = beginHere(cache, 1);
    const ends = await Promise.all([here, begin('C', 'load', 1), begin('Python', 'load', 1)].map((member) => member.all));
    assert.deepEqual(ends, [[`0 "from ${writer}"`], [`0 "from ${writer}"`], [`0 "from ${writer}"`]]);
    await cache.invalidate('mixed');
  }
});

test('one lock: each waits for the others, and fences increase', async () => {
  let last = 0;
  for (const language of ['C', 'Python']) {
    const holder = begin(language, 'lock', 300);
    const fence = Number(await holder.first);
    assert.equal(await client.tryLock('mixed', { ttl: '10s' }), null);
    assert.ok(fence > last);
    const lock = await client.lock('mixed', { ttl: '10s' });
    assert.ok(lock.fence > fence);
    const theirs = ['C', 'Python'].map((other) => begin(other, 'lock', 50));
    let done = 0;
    for (const one of theirs) one.first.then(() => (done += 1));
    await sleep(400);
    assert.equal(done, 0);
    assert.equal(lock.held, true);
    await lock.release();
    const fences = (await Promise.all(theirs.map((one) => one.all))).map(Number).sort((a, b) => a - b);
    assert.ok(lock.fence < fences[0] && fences[0] < fences[1], `${lock.fence} ${fences}`);
    last = fences[1];
  }
});
