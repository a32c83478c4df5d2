// SPDX-License-Identifier: MIT

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { build as buildExpress } from './express.mjs';
import { build as buildFastify } from './fastify.mjs';

function table() {
  const rows = new Map([['42', { cents: 1299 }]]);
  const source = {
    reads: 0,
    async read(id) {
      source.reads += 1;
      await sleep(20);
      return rows.get(id);
    },
    write: async (id, price) => void rows.set(id, price),
  };
  return source;
}

test('fastify: a hundred requests read the source once, a change is seen at once, the night has one run', async () => {
  const source = table();
  let nights = 0;
  const app = buildFastify({ source, cleanUp: () => (nights += 1) });
  const get = (id) => app.inject({ url: `/prices/${id}` });
  const all = await Promise.all(Array.from({ length: 100 }, () => get('42')));
  assert.ok(all.every((response) => response.json().cents === 1299));
  assert.equal(source.reads, 1);
  await app.inject({ method: 'PUT', url: '/prices/42', payload: { cents: 999 } });
  assert.equal((await get('42')).json().cents, 999);
  assert.equal((await get('43')).statusCode, 404);
  assert.equal((await get('43')).statusCode, 404);
  assert.equal(source.reads, 3);
  await Promise.all([app.nightly(), app.nightly(), app.nightly()]);
  assert.equal(nights, 1);
  await app.close();
});

test('express: the same, and two reports do not overlap', async () => {
  const source = table();
  const app = buildExpress({ source, report: async ({ fence }) => (await sleep(100), { fence }) });
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  const all = await Promise.all(Array.from({ length: 50 }, async () => (await fetch(`${url}/prices/42`)).json()));
  assert.ok(all.every((price) => price.cents === 1299));
  assert.equal(source.reads, 1);
  const body = JSON.stringify({ cents: 999 });
  await fetch(`${url}/prices/42`, { method: 'PUT', body, headers: { 'content-type': 'application/json' } });
  assert.equal((await (await fetch(`${url}/prices/42`)).json()).cents, 999);
  assert.equal((await fetch(`${url}/prices/43`)).status, 404);
  const reports = await Promise.all([1, 2].map(() => fetch(`${url}/report`, { method: 'POST' })));
  assert.deepEqual(reports.map((response) => response.status).sort(), [200, 409]);
  server.close();
  server.closeAllConnections();
  await app.close();
});

test('nest: the provider compiles, loads once, and closes with the application', async () => {
  execFileSync('node_modules/.bin/tsc', ['--strict', '--experimentalDecorators', '--emitDecoratorMetadata', '--target', 'es2022',
    '--lib', 'es2022,esnext.disposable', '--module', 'node16', '--outDir', 'build', 'nest.ts'],
    { cwd: import.meta.dirname, stdio: 'inherit' });
  const { NestFactory } = await import('@nestjs/core');
  const { PricesModule, PriceService } = await import('./build/nest.js');
  const app = await NestFactory.createApplicationContext(PricesModule, { logger: false });
  const prices = app.get(PriceService);
  const all = await Promise.all(Array.from({ length: 20 }, () => prices.find('42')));
  assert.ok(all.every((price) => price.cents === 1299));
  await app.close();
});
