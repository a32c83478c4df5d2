// SPDX-License-Identifier: MIT

import { GlideClient } from '@valkey/valkey-glide';
import KeyvRedis from '@keyv/redis';
import { BentoCache, bentostore } from 'bentocache';
import { redisDriver } from 'bentocache/drivers/redis';
import { createCache } from 'cache-manager';
import { Cacheable } from 'cacheable';
import { createCache as createDedupe } from 'async-cache-dedupe';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { createClient as createClient6 } from 'redis6';
import { connect } from 'stanchion';

import { startRedis } from '../test/support/redis.mjs';
import { compare } from './measure.mjs';

const server = await startRedis();
const { url, port } = server;
const user = { id: 7, name: 'Ada Lovelace', mail: 'ada@example.org', tags: ['a', 'b'], about: 'x'.repeat(100) };
const keys = Array.from({ length: 1000 }, (_, i) => `key${i}`);
const never = () => {
  throw new Error('a miss');
};

const client = connect(url, { commandTimeout: '5s' });
const users = client.cache('users', { ttl: '1h' });
const texts = client.cache('texts', { ttl: '1h', codec: 'string' });
const redis5 = await createClient({ url }).connect();
const redis6 = await createClient6({ url }).connect();
const ioredis = new Redis(port);
const glide = await GlideClient.createClient({ addresses: [{ host: '127.0.0.1', port }] });
const bento = new BentoCache({
  default: 'redis',
  stores: { redis: bentostore().useL2Layer(redisDriver({ connection: { host: '127.0.0.1', port } })) },
});
const cacheable = new Cacheable({ primary: new KeyvRedis(url), nonBlocking: false });
const manager = createCache({ stores: [new (await import('keyv')).Keyv({ store: new KeyvRedis(url) })] });
let load = async () => user;
const dedupe = createDedupe({ ttl: 3600, storage: { type: 'redis', options: { client: ioredis } } })
  .define('user', (id) => load(id));

for (const key of keys) {
  await users.set(key, user);
  await texts.set(key, JSON.stringify(user));
  await redis5.set(key, JSON.stringify(user));
  await bento.set({ key, value: user, ttl: '1h' });
  await cacheable.set(`c${key}`, user);
  await manager.set(key, user);
  await dedupe.user(key);
}
load = never;
const key = (i) => keys[i % keys.length];
const given = process.argv.slice(2).map(Number);
for (const inFlight of given.length > 0 ? given : [1, 64, 1000]) {
  await compare('a hit over Redis', inFlight, {
    'stanchion getOrLoad': (i) => users.getOrLoad(key(i), never),
    'stanchion get': (i) => users.get(key(i)),
    'stanchion get, a text': (i) => texts.get(key(i)),
    'redis 5.12, raw GET': (i) => redis5.get(key(i)),
    'redis 5.12, GET and JSON.parse': async (i) => JSON.parse(await redis5.get(key(i))),
    'redis 6, raw GET': (i) => redis6.get(key(i)),
    'ioredis, raw GET': (i) => ioredis.get(key(i)),
    'valkey-glide, raw GET': (i) => glide.get(key(i)),
    'bentocache getOrSet': (i) => bento.getOrSet({ key: key(i), ttl: '1h', factory: never }),
    'cacheable get': (i) => cacheable.get(`c${key(i)}`),
    'cache-manager wrap': (i) => manager.wrap(key(i), never),
    'async-cache-dedupe': (i) => dedupe.user(key(i)),
  });
}
await client.close();
process.exit(0); // the server goes with this process: were it stopped before, the peers would say that they lost it
