// SPDX-License-Identifier: MIT
//
// rediss://, with an OpenSSL of our own beside Node's. Certificates are made by the program `openssl`.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import https from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { connect } from 'stanchion';

import { runWell } from './support/child.mjs';
import { freePort, startRedis } from './support/redis.mjs';

const exec = promisify(execFile);
let folder;
let redis; // shows a certificate for "localhost", and asks for none
let strict; // asks for one
const at = (server, host = 'localhost') => `rediss://${host}:${server.tlsPort}`;
const file = (name) => path.join(folder, name);
const clients = [];
const open = (...args) => clients[clients.push(connect(...args)) - 1];

const request = (name, more) => exec('openssl', ['req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes',
  '-subj', `/CN=${name}`, '-keyout', file(`${name}.key`), ...more]);

async function certificate(name) {
  await request(name, ['-out', file(`${name}.csr`)]);
  await writeFile(file(`${name}.ext`), `subjectAltName=DNS:${name}`);
  await exec('openssl', ['x509', '-req', '-in', file(`${name}.csr`), '-CA', file('ca.pem'), '-CAkey', file('ca.key'),
    '-CAcreateserial', '-days', '2', '-extfile', file(`${name}.ext`), '-out', file(`${name}.pem`)]);
}

async function startTls(clientsShow) {
  const tlsPort = await freePort();
  const server = await startRedis({ args: ['--tls-port', tlsPort, '--tls-cert-file', file('localhost.pem'),
    '--tls-key-file', file('localhost.key'), '--tls-ca-cert-file', file('ca.pem'), '--tls-auth-clients', clientsShow] });
  return Object.assign(server, { tlsPort });
}

before(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'stanchion-tls-'));
  await request('ca', ['-x509', '-days', '2', '-out', file('ca.pem')]);
  await request('other', ['-x509', '-days', '2', '-out', file('other.pem')]);
  await certificate('localhost');
  await certificate('client');
  redis = await startTls('no');
  strict = await startTls('yes');
});
after(async () => {
  await Promise.all(clients.map((client) => client.close({ wait: 0 })));
  await redis.stop();
  await strict.stop();
  await rm(folder, { recursive: true });
});

test('over TLS a client does all that it does without', async () => {
  const [a, b] = [open(at(redis), { tlsCaFile: file('ca.pem') }), open(at(redis), { tlsCaFile: file('ca.pem') })];
  await a.ready({ wait: '5s' });
  let runs = 0;
  const load = () => new Promise((resolve) => setTimeout(resolve, 50, { run: ++runs }));
  const all = await Promise.all([a, b, a, b].map((client) => client.cache('c', { ttl: '5m' }).getOrLoad('k', load)));
  assert.deepEqual([runs, ...all], [1, { run: 1 }, { run: 1 }, { run: 1 }, { run: 1 }]);
  const long = 'x'.repeat(1_000_000);
  await a.cache('c', { ttl: '5m' }).set('long', long);
  assert.equal(await b.cache('c', { ttl: '5m' }).get('long'), long);
  const lock = await a.lock('l', { ttl: '10s' });
  const waiting = b.lock('l', { ttl: '10s' });
  await lock.release();
  assert.ok((await waiting).fence > lock.fence);
  assert.match(await redis.command('INFO', 'clients'), /connected_clients:[3-9]/);
});

test('who is not believed is told why, and loads go on without', async () => {
  for (const [url, options, why] of [
    [at(redis), { tlsCaFile: file('other.pem') }, /unknown authority/],
    [at(redis, '127.0.0.1'), { tlsCaFile: file('ca.pem') }, /127\.0\.0\.1/],
    [at(strict), { tlsCaFile: file('ca.pem') }, /certificate/],
  ]) {
    const client = open(url, options);
    await assert.rejects(client.ready({ wait: 1000 }), (error) => {
      assert.match(`${error.message} ${error.serverText}`, why);
      return ['denied', 'unavailable'].includes(error.code);
    });
    assert.equal(await client.cache('c', { ttl: '5m' }).getOrLoad('k', () => 'mine'), 'mine');
  }
});

test('tlsServerName is whom the certificate has to be for', async () => {
  const client = open(at(redis, '127.0.0.1'), { tlsCaFile: file('ca.pem'), tlsServerName: 'localhost' });
  await client.ready({ wait: '5s' });
});

test('a server that asks for a certificate gets that of tlsCertFile', async () => {
  const client = open(at(strict), { tlsCaFile: file('ca.pem'), tlsCertFile: file('client.pem'), tlsKeyFile: file('client.key') });
  await client.ready({ wait: '5s' });
  assert.equal(await client.once('id', { ttl: '1m' }), true);
});

test("Node's own TLS works beside ours", async () => {
  const [key, cert, ca] = await Promise.all(['localhost.key', 'localhost.pem', 'ca.pem'].map((name) => readFile(file(name))));
  const server = https.createServer({ key, cert }, (_, response) => response.end('from Node')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cache = open(at(redis), { tlsCaFile: file('ca.pem') }).cache('beside', { ttl: '5m' });
  for (let i = 0; i < 20; ++i) {
    const options = { host: '127.0.0.1', servername: 'localhost', port: server.address().port, ca, agent: false };
    const asked = new Promise((resolve, reject) => {
      https.get(options, (response) => response.setEncoding('utf8').on('data', resolve)).on('error', reject);
    });
    assert.deepEqual(await Promise.all([asked, cache.getOrLoad('k', () => i, { force: true })]), ['from Node', i]);
  }
  server.close();
});

test('workers and processes that end with TLS connections in use end cleanly', async () => {
  const end = await runWell(`
    import { once } from 'node:events';
    import { Worker } from 'node:worker_threads';
    const workerData = process.argv.slice(1);
    const text = \`
      const { parentPort, workerData: [url, tlsCaFile] } = require('node:worker_threads');
      const client = require('stanchion').connect(url, { tlsCaFile });
      const cache = client.cache('c', { ttl: '5m' });
      client.ready().then(() => {
        for (let i = 0; i < 20; ++i) {
          const again = () => cache.getOrLoad('k' + i, () => i, { force: true }).then(again, () => {});
          again();
        }
        parentPort.postMessage('going');
      });
    \`;
    for (let round = 0; round < 5; ++round) {
      const worker = new Worker(text, { eval: true, execArgv: [], workerData });
      await once(worker, 'message');
      await worker.terminate();
    }
    const worker = new Worker(text, { eval: true, execArgv: [], workerData });
    await once(worker, 'message');
    console.log('all ended');
    process.exit(0);
  `, { args: [at(redis), file('ca.pem')] });
  assert.equal(end.out, 'all ended\n', end.err);
});
