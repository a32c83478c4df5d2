// SPDX-License-Identifier: MIT
//
// Ten processes, 2,000 callers each, all at one moment on one cold key; the load takes 300 ms.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
    return () => cache.getOrLoad('k', load);
  },
  async bentocache(url, load) {
    const { BentoCache, bentostore } = await import('bentocache');
    const { redisDriver } = await import('bentocache/drivers/redis');
    const connection = { host: '127.0.0.1', port: Number(new URL(url).port) };
    const bento = new BentoCache({ default: 'r', stores: { r: bentostore().useL2Layer(redisDriver({ connection })) } });
    await bento.get({ key: 'warm' });
    return () => bento.getOrSet({ key: 'k', ttl: '1h', factory: load });
  },
};

async function child(name, url, at) {
  let loads = 0;
  const call = await strategies[name](url, async () => {
    loads += 1;
    await sleep(LOAD_MS);
    return { value: 'loaded' };
  });
  await sleep(at - Date.now());
  const took = await Promise.all(Array.from({ length: CALLERS }, async () => {
    const began = performance.now();
    const { value } = await call();
    if (value !== 'loaded') throw new Error('a wrong value');
    return performance.now() - began;
  }));
  process.stdout.write(JSON.stringify({ loads, took }), () => process.exit(0));
}

async function commands(server) {
  const info = await server.command('INFO', 'commandstats');
  const not = /^cmdstat_(info|client|hello|command|script|ping|select|config|time|subscribe)/;
  return info.split('\r\n').filter((line) => line.startsWith('cmdstat_') && !not.test(line))
    .reduce((sum, line) => sum + Number(/calls=(\d+)/.exec(line)[1]), 0);
}

async function parent() {
  const { startRedis } = await import('../test/support/redis.mjs');
  console.log(`${PROCESSES} processes of ${CALLERS} callers, a load of ${LOAD_MS} ms`);
  for (const name of Object.keys(strategies)) {
    for (let round = 0; round < 3; ++round) {
      const server = await startRedis();
      const at = String(Date.now() + 5000);
      const ends = await Promise.all(Array.from({ length: PROCESSES }, async () => {
        const one = spawn(process.execPath, [fileURLToPath(import.meta.url), name, server.url, at],
          { stdio: ['ignore', 'pipe', 'inherit'] });
        let out = '';
        one.stdout.on('data', (data) => (out += data));
        await once(one, 'close');
        return JSON.parse(out);
      }));
      const took = ends.flatMap((end) => end.took).sort((a, b) => a - b);
      const loads = ends.reduce((sum, end) => sum + end.loads, 0);
      console.log(`  ${name.padEnd(12)} loads ${String(loads).padStart(3)}   p50 ${Math.round(took[took.length >> 1])} ms` +
        `   p99 ${Math.round(took[Math.floor(took.length * 0.99)])} ms   max ${Math.round(took.at(-1))} ms` +
        `   commands ${await commands(server)} (inside scripts too)`);
      await server.stop();
    }
  }
}

const [name, url, at] = process.argv.slice(2);
await (name ? child(name, url, Number(at)) : parent());
