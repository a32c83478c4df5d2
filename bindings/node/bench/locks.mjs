// SPDX-License-Identifier: MIT

import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import Redlock from 'redlock';
import { connect } from 'stanchion';

import { startRedis } from '../test/support/redis.mjs';
import { compare } from './measure.mjs';

const server = await startRedis();
const client = connect(server.url, { commandTimeout: '5s' });
const redis = new Redis(server.port);
const redlock = new Redlock([redis], { retryCount: 0 });
redlock.on('error', () => {});

const given = process.argv.slice(2).map(Number);
for (const inFlight of given.length > 0 ? given : [1, 64]) {
  await compare('lock and release, each in flight its own name', inFlight, {
    stanchion: async (i) => (await client.lock(`s${i % 1000}`, { ttl: 10_000 })).release(),
    redlock: async (i) => (await redlock.acquire([`r${i % 1000}`], 10_000)).release(),
    'redis-semaphore': async (i) => {
      const mutex = new Mutex(redis, `m${i % 1000}`, { lockTimeout: 10_000, refreshInterval: 0 });
      await mutex.acquire();
      await mutex.release();
    },
  });
}
await client.close();
process.exit(0); // the server goes with this process: were it stopped before, the peers would say that they lost it
