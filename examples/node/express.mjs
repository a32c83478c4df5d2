// SPDX-License-Identifier: MIT
//
// The same in Express, with the memoiser `wrap`, and a lock around work that must not overlap.

import express from 'express';
import { connect } from 'stanchion';

export function build({ store = 'memory://', source, report }) {
  const client = connect(store);
  const prices = client.cache('prices', { ttl: '5m', softTtl: '4m' });
  const findPrice = prices.wrap((id) => source.read(id), { key: (id) => id });
  const app = express();
  app.use(express.json());

  app.get('/prices/:id', async (request, response) => {
    const price = await findPrice(request.params.id);
    if (price) response.json(price);
    else response.status(404).json({ error: 'no such price' });
  });

  app.put('/prices/:id', async (request, response) => {
    await source.write(request.params.id, request.body);
    await findPrice.invalidate(request.params.id);
    response.json(request.body);
  });

  app.post('/report', async (_request, response) => {
    const lock = await client.tryLock('report', { ttl: '30s' });
    if (!lock) return response.status(409).json({ error: 'a report is being written' });
    try {
      return response.json(await report({ fence: lock.fence, signal: lock.signal }));
    } finally {
      await lock[Symbol.asyncDispose]();
    }
  });
  return Object.assign(app, { close: () => client.close() });
}
