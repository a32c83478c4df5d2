// SPDX-License-Identifier: MIT
//
// Ten processes, 2,000 callers each, all at one moment on one cold key; the load takes 300 ms. The processes have served
// other keys before, as those that meet the expiry of a hot key have; `cold`: they have just been started.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const PROCESSES = 10;
const CALLERS = 2000;
const LOAD_MS = 300;

const strategies = {
  async stanchion(url, load) {
    const { connect } = await import('stanchion');
    const client = connect(url);
    const cache = client.cache('c', { ttl: '1h' });
    await client.ready();
    return (key) => cache.getOrLoad(key, load);
  },
  async bentocache(url, load) {
    const { BentoCache, bentostore } = await import('bentocache');
    const { redisDriver } = await import('bentocache/drivers/redis');
    const connection = { host: '127.0.0.1', port: Number(new URL(url).port) };
    const bento = new BentoCache({ default: 'r', stores: { r: bentostore().useL2Layer(redisDriver({ connection })) } });
    await bento.get({ key: 'warm' });
    return (key) => bento.getOrSet({ key, ttl: '1h', factory: load });
  },
  async cacheable(url, load) {
    const [{ Cacheable }, { default: KeyvRedis }] = await Promise.all([import('cacheable'), import('@keyv/redis')]);
    const cache = new Cacheable({ secondary: new KeyvRedis(url), nonBlocking: false });
    await cache.get('warm');
    return (key) => cache.getOrSet(key, load, { ttl: '1h' });
  },
  async 'cache-manager'(url, load) {
    const [{ createCache }, { default: KeyvRedis }, { Keyv }] =
      await Promise.all([import('cache-manager'), import('@keyv/redis'), import('keyv')]);
    const cache = createCache({ stores: [new Keyv({ store: new KeyvRedis(url) })] });
    await cache.get('warm');
    return (key) => cache.wrap(key, load, 3_600_000);
  },
  async 'async-cache-dedupe'(url, load) {
    const [{ createCache }, { Redis }] = await Promise.all([import('async-cache-dedupe'), import('ioredis')]);
    const client = new Redis(url);
    const cache = createCache({ ttl: 3600, storage: { type: 'redis', options: { client } } }).define('load', load);
    await client.ping();
    return (key) => cache.load(key);
  },
  // What people write themselves: one promise per key and process, a lease by SET NX, a message when the value is there.
  async 'by hand'(url, load) {
    const { Redis } = await import('ioredis');
    const [redis, listening] = [new Redis(url), new Redis(url)];
    listening.setMaxListeners(0);
    await Promise.all([redis.ping(), listening.ping()]);
    const flights = new Map();
    async function look(key) {
      const told = new Promise((resolve) => listening.on('message', resolve));
      for (;;) {
        const found = await redis.get(key);
        if (found !== null) return JSON.parse(found);
        if (await redis.set(`lease:${key}`, '1', 'PX', 5000, 'NX')) {
          const value = await load();
          await redis.pipeline().set(key, JSON.stringify(value), 'EX', 3600).publish(key, '').del(`lease:${key}`).exec();
          return value;
        }
        await listening.subscribe(key);
        const late = await redis.get(key);
        if (late !== null) return JSON.parse(late);
        await Promise.race([told, sleep(1000)]);
      }
    }
    return (key) => {
      let flight = flights.get(key);
      if (!flight) flights.set(key, flight = look(key).finally(() => flights.delete(key)));
      return flight;
    };
  },
};

async function child(name, url, rounds) {
  let loads = 0;
  let ms = 1;
  const call = await strategies[name](url, async () => {
    loads += 1;
    await sleep(ms);
    return { value: 'loaded' };
  });
  for (let round = 0; round < rounds; ++round) {
    await Promise.all(Array.from({ length: CALLERS }, () => call(`warm${round}`)));
  }
  ms = LOAD_MS;
  loads = 0;
  process.stdout.write('ready\n');
  const [at] = await once(createInterface({ input: process.stdin }), 'line');
  await sleep(Number(at) - Date.now());
  const took = await Promise.all(Array.from({ length: CALLERS }, async () => {
    const began = performance.now();
    const { value } = await call('k');
    if (value !== 'loaded') throw new Error('a wrong value');
    return performance.now() - began;
  }));
  process.stdout.write(`${JSON.stringify({ loads, took })}\n`, () => process.exit(0));
}

/** Counts commands as they are sent: what scripts call does not count, nor what clients say once as they connect. */
async function watch(server) {
  const socket = dial(server.port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('MONITOR\r\n');
  await once(socket, 'data');
  const not = /^"(info|client|hello|command|script|ping|select|config|time|auth|readonly)"/i;
  const seen = { commands: 0, end: () => socket.destroy() };
  createInterface({ input: socket }).on('line', (line) => {
    const [, from, command] = /^\+[\d.]+ \[\d+ ([^\]]+)\] (.*)$/.exec(line) ?? [undefined, 'lua', ''];
    if (from !== 'lua' && !not.test(command) && !command.includes('warm')) seen.commands += 1;
  });
  return seen;
}

/** Measures that strategy, or all of them. */
async function parent(only, rounds) {
  const { startRedis } = await import('../test/support/redis.mjs');
  console.log(`${PROCESSES} ${rounds ? '' : 'new '}processes of ${CALLERS} callers, a load of ${LOAD_MS} ms`);
  for (const name of only ? [only] : Object.keys(strategies)) {
    for (let round = 0; round < 3; ++round) {
      const server = await startRedis();
      const seen = await watch(server);
      const all = Array.from({ length: PROCESSES }, () => {
        const one = spawn(process.execPath, [fileURLToPath(import.meta.url), name, server.url, String(rounds)],
          { stdio: ['pipe', 'pipe', 'inherit'] });
        return { one, lines: createInterface({ input: one.stdout })[Symbol.asyncIterator]() };
      });
      await Promise.all(all.map(({ lines }) => lines.next()));
      const at = Date.now() + 1000;
      for (const { one } of all) one.stdin.write(`${at}\n`);
      const ends = await Promise.all(all.map(async ({ lines }) => JSON.parse((await lines.next()).value)));
      const took = ends.flatMap((end) => end.took).sort((a, b) => a - b);
      const loads = ends.reduce((sum, end) => sum + end.loads, 0);
      console.log(`  ${name.padEnd(18)} loads ${String(loads).padStart(3)}   p50 ${Math.round(took[took.length >> 1])} ms` +
        `   p99 ${Math.round(took[Math.floor(took.length * 0.99)])} ms   max ${Math.round(took.at(-1))} ms` +
        `   commands ${seen.commands} as sent`);
      seen.end();
      await server.stop();
    }
  }
}

const words = process.argv.slice(2);
if (words.length === 3) {
  const [name, url, rounds] = words;
  await child(name, url, Number(rounds));
} else {
  await parent(words.find((word) => word !== 'cold'), words.includes('cold') ? 0 : 10);
}
