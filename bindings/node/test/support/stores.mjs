// SPDX-License-Identifier: MIT
//
// Each promise about a store holds for the embedded one and for a Redis.

import { after, before, describe } from 'node:test';

import { connect } from 'stanchion';

import { startRedis } from './redis.mjs';

let stores = 0;

/** Runs `tests(store)` for both; `store.open()` is a client of one store, `store.url` its URL, `store.redis` the server. */
export function onEachStore(title, tests) {
  for (const kind of ['memory', 'redis']) {
    describe(`${title}, on ${kind}`, () => {
      const store = { kind, url: `memory://store-${++stores}`, redis: undefined, clients: [] };
      store.open = (options) => {
        const client = connect(store.url, options);
        store.clients.push(client);
        return client;
      };
      before(async () => {
        if (kind !== 'redis') return;
        store.redis = await startRedis();
        store.url = store.redis.url;
      });
      after(async () => {
        await Promise.all(store.clients.map((client) => client.close({ wait: 0 })));
        await store.redis?.stop();
      });
      tests(store);
    });
  }
}

/** Counts runs of a source that takes `ms`. */
export function source(answer, ms = 30) {
  const counted = async (context) => {
    counted.runs += 1;
    await new Promise((resolve) => setTimeout(resolve, ms));
    return typeof answer === 'function' ? answer(context) : answer;
  };
  counted.runs = 0;
  return counted;
}
