// SPDX-License-Identifier: MIT

import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { channels, connect, StanchionError } from 'stanchion';

import { runWell } from './support/child.mjs';
import { startRedis } from './support/redis.mjs';
import { onEachStore, source } from './support/stores.mjs';

onEachStore('a cache of users', (store) => {
  test('a miss loads, a hit does not, and both give the user', async () => {
    const users = store.open().cache('users-1', { ttl: '5m' });
    const load = source(({ key }) => ({ key, name: 'Ada' }));
    assert.deepEqual(await users.getOrLoad('7', load), { key: '7', name: 'Ada' });
    assert.deepEqual(await users.getOrLoad('7', load), { key: '7', name: 'Ada' });
    assert.deepEqual(await users.get('7'), { key: '7', name: 'Ada' });
    assert.equal(load.runs, 1);
  });

  test('1,000 callers on one cold key make one call, and each gets an object of his own', async () => {
    const users = store.open().cache('users-2', { ttl: '5m' });
    const load = source(() => ({ name: 'Ada' }), 50);
    const all = await Promise.all(Array.from({ length: 1000 }, () => users.getOrLoad('7', load)));
    assert.equal(load.runs, 1);
    assert.equal(new Set(all).size, 1000);
    assert.deepEqual(all[999], { name: 'Ada' });
  });

  test('what a loader keeps is not what its caller gets, unless he asks to share', async () => {
    const client = store.open();
    const kept = { tags: ['a'] };
    const users = client.cache('users-12', { ttl: '5m' });
    const user = await users.getOrLoad('7', () => kept);
    assert.deepEqual(user, kept);
    assert.notEqual(user, kept);
    assert.equal(await users.getOrLoad('8', () => kept, { share: true }), kept);
  });

  test('callers who ask to share get the very object', async () => {
    const users = store.open().cache('users-3', { ttl: '5m', share: true });
    const load = source(() => ({ name: 'Ada' }));
    const all = await Promise.all(Array.from({ length: 50 }, () => users.getOrLoad('7', load)));
    assert.equal(new Set(all).size, 1);
  });

  test('a user who does not exist is asked for once, and is undefined', async () => {
    const users = store.open().cache('users-4', { ttl: '5m' });
    const load = source(undefined, 1);
    assert.equal(await users.getOrLoad('8', load), undefined);
    assert.equal(await users.getOrLoad('8', load), undefined);
    assert.equal(load.runs, 1);
    const seen = await users.lookup('8');
    assert.deepEqual([seen.hit, seen.absent, seen.value], [true, true, undefined]);
    const nothing = await users.lookup('9');
    assert.deepEqual([nothing.hit, nothing.absent], [false, false]);
  });

  test('null, 0, the empty text and false are values', async () => {
    const things = store.open().cache('things', { ttl: '5m' });
    for (const value of [null, 0, '', false]) {
      const load = source(value, 1);
      assert.equal(await things.getOrLoad(`is ${value}`, load), value);
      assert.equal(await things.getOrLoad(`is ${value}`, load), value);
      assert.equal(load.runs, 1);
      assert.equal((await things.lookup(`is ${value}`)).absent, false);
    }
  });

  test('what cannot be decoded is loaded again, once for 100 callers, and overwritten', async () => {
    const client = store.open();
    const raw = client.cache('users-5', { ttl: '5m', codec: { encode: (text) => text, decode: (bytes) => `${bytes}` } });
    const strict = { encode: (v) => JSON.stringify(v), decode: (bytes) => JSON.parse(`${bytes}`) };
    const users = client.cache('users-5', { ttl: '5m', codec: strict });
    await raw.set('7', '{"name": "Ad');
    await assert.rejects(users.get('7'), { code: 'undecodable' });
    const load = source(() => ({ name: 'Ada' }));
    const all = await Promise.all(Array.from({ length: 100 }, () => users.getOrLoad('7', load)));
    assert.equal(load.runs, 1);
    assert.deepEqual(all[0], { name: 'Ada' });
    assert.deepEqual(await users.get('7'), { name: 'Ada' });
  });

  test('broken JSON is a miss for who can load, and an error for who cannot', async () => {
    const client = store.open();
    const users = client.cache('users-13', { ttl: '5m' });
    if (store.kind === 'redis') { // its last brace is lost
      await users.set('7', { name: 'Ada Lovelace' });
      const length = Number((await store.redis.command('STRLEN', 'stn:v:users-13:{7}')).slice(1));
      await store.redis.command('SETRANGE', 'stn:v:users-13:{7}', `${length - 1}`, ' ');
    } else {
      await client.cache('users-13', { ttl: '5m', codec: 'string' }).set('7', '{"name": "Ad');
    }
    await assert.rejects(users.get('7'), { code: 'undecodable', key: '7' });
    await assert.rejects(users.lookup('7'), { code: 'undecodable', key: '7' });
    const load = source(() => ({ name: 'Ada' }));
    const all = await Promise.all([1, 2, 3].map(() => users.getOrLoad('7', load)));
    assert.deepEqual([load.runs, ...all], [1, { name: 'Ada' }, { name: 'Ada' }, { name: 'Ada' }]);
    assert.deepEqual(await users.get('7'), { name: 'Ada' });
  });

  test('lookup tells the age, the source, and what is stale', async () => {
    const users = store.open().cache('users-14', { ttl: '5m', softTtl: '4m' });
    const none = await users.lookup('7');
    assert.deepEqual(none, { hit: false, absent: false, value: undefined, stale: false, age: undefined, source: undefined });
    await users.set('7', 'Ada');
    await sleep(30);
    const { age, ...rest } = await users.lookup('7');
    assert.deepEqual(rest, { hit: true, absent: false, value: 'Ada', stale: false, source: 'store' });
    assert.ok(age >= 25 && age < 30_000, `${age}`);
    await users.invalidate('7', { stale: true });
    assert.equal((await users.lookup('7')).stale, true);
  });

  test('each caller goes on in his own async context, whoever loaded', async () => {
    const users = store.open().cache('users-15', { ttl: '5m' });
    const request = new AsyncLocalStorage();
    const load = source(() => request.getStore(), 30);
    const all = await Promise.all([1, 2, 3].map((id) => request.run(id, async () => {
      const loader = await users.getOrLoad('7', load);
      return [loader, request.getStore()];
    })));
    assert.deepEqual(all.map(([, mine]) => mine), [1, 2, 3]);
    assert.ok(all.every(([loader]) => loader === all[0][0]));
  });

  test('set and invalidate do what they say', async () => {
    const users = store.open().cache('users-6', { ttl: '5m' });
    await users.set('7', { name: 'Grace' });
    assert.deepEqual(await users.get('7'), { name: 'Grace' });
    await users.invalidate('7');
    assert.equal(await users.get('7'), undefined);
    await assert.rejects(users.set('7', undefined), { code: 'invalid_argument' });
  });

  test('a stale value is answered at once and refreshed in the background, in the context of its caller', async () => {
    const users = store.open().cache('users-7', { ttl: '5m', softTtl: '4m' });
    const request = new AsyncLocalStorage();
    const contexts = [];
    const load = source(() => (contexts.push(request.getStore()), { version: load.runs }), 1);
    await request.run('first', () => users.getOrLoad('7', load));
    await users.invalidate('7', { stale: true });
    const stale = await request.run('second', () => users.getOrLoad('7', load));
    assert.deepEqual(stale, { version: 1 });
    for (let i = 0; i < 200 && (await users.lookup('7')).stale; ++i) await sleep(10);
    assert.deepEqual(await users.get('7'), { version: 2 });
    assert.deepEqual(contexts, ['first', 'second']);
  });

  test('a refresh that fails is told on the channel and is never an unhandled rejection', async () => {
    const users = store.open().cache('users-8', { ttl: '5m', softTtl: '4m' });
    const told = [];
    const hear = (message) => told.push(message);
    subscribe(channels.backgroundError, hear);
    const failure = new Error('the source is away');
    await users.set('7', 'old');
    await users.invalidate('7', { stale: true });
    assert.equal(await users.getOrLoad('7', () => { throw failure; }), 'old');
    for (let i = 0; i < 200 && told.length === 0; ++i) await sleep(10);
    unsubscribe(channels.backgroundError, hear);
    assert.equal(told[0].error, failure);
    assert.equal(told[0].what, 'refresh');
  });

  test('a loader may say how long its value is good, and a call may', async () => {
    const users = store.open().cache('users-9', { ttl: '5m' });
    await users.getOrLoad('a', ({ fresh }) => fresh('short', { ttl: '20ms' }));
    await users.getOrLoad('b', () => 'short', { ttl: 20 });
    assert.equal(await users.get('a'), 'short');
    await sleep(100);
    assert.equal(await users.get('a'), undefined);
    assert.equal(await users.get('b'), undefined);
    await users.getOrLoad('c', ({ fresh }) => fresh(undefined, { ttl: '20ms' }));
    assert.equal((await users.lookup('c')).absent, true);
    await sleep(100);
    assert.equal((await users.lookup('c')).hit, false);
  });

  test('force loads although a fresh value is there', async () => {
    const users = store.open().cache('users-10', { ttl: '5m' });
    const load = source(() => load.runs, 1);
    await users.getOrLoad('7', load);
    assert.equal(await users.getOrLoad('7', load, { force: true }), 2);
    assert.equal(await users.get('7'), 2);
  });

  test('wrap makes a function whose results are cached, by its arguments', async () => {
    const users = store.open().cache('users-11', { ttl: '5m' });
    let runs = 0;
    const find = users.wrap(async (city, age) => ({ city, age, run: ++runs }), { key: (city, age) => `${city}/${age}` });
    assert.deepEqual(await find('Oslo', 3), { city: 'Oslo', age: 3, run: 1 });
    assert.deepEqual(await find('Oslo', 3), { city: 'Oslo', age: 3, run: 1 });
    assert.deepEqual(await find('Oslo', 4), { city: 'Oslo', age: 4, run: 2 });
    await find.invalidate('Oslo', 3);
    assert.equal((await find('Oslo', 3)).run, 3);
    assert.equal((await find.refresh('Oslo', 3)).run, 4);
  });

  test('codecs: buffers and texts come back as they went in', async () => {
    const client = store.open();
    const bytes = client.cache('bytes', { ttl: '5m', codec: 'buffer' });
    const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    assert.deepEqual(await bytes.getOrLoad('all', () => all), all);
    assert.deepEqual(await bytes.get('all'), all);
    assert.deepEqual(await bytes.getOrLoad('none', () => Buffer.alloc(0)), Buffer.alloc(0));
    assert.deepEqual(await bytes.get('none'), Buffer.alloc(0));
    const texts = client.cache('texts', { ttl: '5m', codec: 'string' });
    for (const text of ['', 'plain', 'Ærøskøbing 🦆', '\0nul']) {
      await texts.set(`t${text}`, text);
      assert.equal(await texts.get(`t${text}`), text);
    }
    const json = client.cache('json', { ttl: '5m' });
    const mixed = { duck: '🦆', list: [1, null, 'å'], nested: { deep: '\u2028' } };
    await json.set('mixed', mixed);
    assert.deepEqual(await json.get('mixed'), mixed);
  });

  test('JSON that other languages cannot read is refused when it is written', async () => {
    const json = store.open().cache('strict', { ttl: '5m' });
    for (const value of [NaN, { a: [Infinity] }, '\ud800', { '\udfff': 1 }, () => 1, Symbol('s')]) {
      await assert.rejects(json.set('7', value), { code: 'invalid_argument' });
    }
    for (const value of ['\\ud800', 'null', null, { a: null }]) {
      await json.set('7', value);
      assert.deepEqual(await json.get('7'), value);
    }
    await assert.rejects(json.getOrLoad('8', () => ({ a: NaN })), { code: 'invalid_argument' });
  });
});

test('eight processes on one cold key make one call', async () => {
  const redis = await startRedis();
  const program = `
    import { connect } from 'stanchion';
    import { setTimeout as sleep } from 'node:timers/promises';
    const [url, at] = process.argv.slice(1);
    const client = connect(url);
    const cache = client.cache('c', { ttl: '5m' });
    await client.ready();
    await sleep(Number(at) - Date.now());
    let runs = 0;
    const all = await Promise.all(Array.from({ length: 125 }, () => cache.getOrLoad('7', async () => {
      runs += 1;
      await sleep(100);
      return 'Ada';
    })));
    if (!all.every((value) => value === 'Ada')) throw new Error('wrong value');
    console.log(runs);
  `;
  const at = String(Date.now() + 3000);
  const ends = await Promise.all(Array.from({ length: 8 }, () => runWell(program, { args: [redis.url, at] })));
  assert.equal(ends.reduce((sum, end) => sum + Number(end.out), 0), 1);
  await redis.stop();
});

describe('what a caller may get wrong', () => {
  const client = connect();
  const cache = client.cache('wrong', { ttl: '5m' });
  test('options are checked by the core, which names the nearest', () => {
    assert.throws(() => client.cache('x', { tll: '5m' }), { code: 'unknown_option', message: /"ttl"/ });
    assert.throws(() => client.cache('x', { ttl: '5 minutes' }), { code: 'invalid_argument' });
    assert.throws(() => client.cache('x', { ttl: NaN }), { code: 'invalid_argument' });
    assert.throws(() => connect('mysql://x'), StanchionError);
    assert.throws(() => connect('redis://user:secret@:nonsense'), (error) => !`${error}`.includes('secret'));
  });
  test('keys are checked, and errors name them', async () => {
    await assert.rejects(cache.get(''), { code: 'invalid_argument' });
    await assert.rejects(cache.get('\ud800'), { code: 'invalid_argument' });
    await assert.rejects(cache.get('x'.repeat(1025)), { code: 'too_large' });
    await assert.rejects(cache.get(7), { code: 'invalid_argument' });
    await assert.rejects(cache.getOrLoad('7'), { code: 'invalid_argument' });
    await assert.rejects(cache.getOrLoad('7', () => 1, { wait: 1.5 }), { code: 'invalid_argument' });
    await assert.rejects(cache.getOrLoad('7', () => 1, { ttl: -5 }), { code: 'invalid_argument' });
  });
  test('an error has the key or the name that it is about', async () => {
    const locked = await client.lock('named', { ttl: '10s' });
    await assert.rejects(client.lock('named', { ttl: '10s', wait: 1 }), { code: 'busy', key: 'named' });
    await locked.release();
    const circle = cache.getOrLoad('round', () => cache.getOrLoad('round', () => 1));
    await assert.rejects(circle, { code: 'would_deadlock', key: 'round' });
    const slow = cache.getOrLoad('slow', () => sleep(50));
    await assert.rejects(cache.getOrLoad('slow', () => 1, { wait: 5 }), { code: 'timeout', key: 'slow' });
    await slow;
    await assert.rejects(cache.get('x'.repeat(1025)), { code: 'too_large' });
    await assert.rejects(cache.set('unset', undefined), { code: 'invalid_argument', key: 'unset' });
    await assert.rejects(cache.set('bad', NaN), { code: 'invalid_argument' });
    const group = client.group();
    const busy = group.do('run', () => sleep(50));
    await assert.rejects(group.do('run', () => 1, { wait: 5 }), { code: 'timeout', key: 'run' });
    await busy;
  });
  test('an error tells where it was waited for', async () => {
    const error = await cache.getOrLoad('own', () => cache.getOrLoad('own', () => 1)).catch((e) => e);
    assert.equal(error.code, 'would_deadlock');
    assert.match(error.stack, /user_cache\.test\.mjs/);
  });
  test('bytes are good keys', async () => {
    await cache.set(Buffer.from([0, 255]), 1);
    assert.equal(await cache.get(new Uint8Array([0, 255])), 1);
  });
});

describe('a process', () => {
  test('that is done stores what it loaded, and ends by itself', async () => {
    const redis = await startRedis();
    const end = await runWell(`
      import { connect } from 'stanchion';
      const cache = connect(process.argv[1]).cache('c', { ttl: '5m' });
      console.log(await cache.getOrLoad('7', () => 'Ada'));
    `, { args: [redis.url] });
    assert.equal(end.out, 'Ada\n');
    assert.equal((await redis.keys(':v:c:')).length, 1);
    assert.match(await redis.command('GET', 'stn:v:c:{7}'), /"Ada"/);
    await redis.stop();
  });
});
