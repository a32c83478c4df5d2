// SPDX-License-Identifier: MIT
//
// A Fastify server: GET /prices/:id is cached, PUT changes it, and a job runs once a night on one host of the fleet.
//
//   STORE=redis://localhost PORT=3000 node fastify.mjs

import Fastify from 'fastify';
import { connect } from 'stanchion';

/** The service. `source` has read(id, signal) and write(id, price); `cleanUp` is the nightly job. */
export function build({ store = 'memory://', source, cleanUp }) {
  const app = Fastify();
  const client = connect(store);
  const prices = client.cache('prices', { ttl: '5m', softTtl: '4m' });

  app.get('/prices/:id', async (request, reply) => {
    const price = await prices.getOrLoad(request.params.id, ({ key, signal }) => source.read(key, signal));
    return price ?? reply.code(404).send({ error: 'no such price' });
  });

  app.put('/prices/:id', async (request) => {
    await source.write(request.params.id, request.body);
    await prices.invalidate(request.params.id); // a load that is running now cannot store what it read before
    return request.body;
  });

  // Every host asks, at its own time; one of them gets the slot of the night.
  const nightly = () => client.tick('clean-up', { every: '24h', offset: '2h' }, cleanUp);
  const timer = setInterval(() => nightly().catch((error) => app.log.error(error)), 60_000);
  timer.unref();

  app.addHook('onClose', async () => {
    clearInterval(timer);
    await client.close();
  });
  return Object.assign(app, { nightly });
}

if (process.argv[1] === import.meta.filename) {
  const table = new Map([['42', { cents: 1299 }]]);
  const source = { read: async (id) => table.get(id), write: async (id, price) => table.set(id, price) };
  const app = build({ store: process.env.STORE, source, cleanUp: () => console.log('cleaning up') });
  await app.listen({ port: Number(process.env.PORT ?? 3000) });
}
