// SPDX-License-Identifier: MIT
//
// Worker threads and the end of processes, each in a child process: a crash is an exit code here.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { run, runWell } from './support/child.mjs';
import { startRedis } from './support/redis.mjs';

let redis;
before(async () => {
  redis = await startRedis();
});
after(() => redis.stop());

// 30 workers, three at a time, each with calls of every kind in flight when it ends.
const matrix = (how, inMain) => `
  import { once } from 'node:events';
  import { Worker } from 'node:worker_threads';
  const [url] = process.argv.slice(1);
  ${inMain ? "const { connect } = await import('stanchion'); globalThis.mine = connect(url); await mine.ready();" : ''}
  const text = \`
    const { parentPort, workerData } = require('node:worker_threads');
    const { connect } = require('stanchion');
    const client = connect(workerData);
    const cache = client.cache('c', { ttl: '5m', softTtl: '4m' });
    const group = client.group();
    (async () => {
      const held = await client.lock('held-' + require('node:worker_threads').threadId, { ttl: '10s' });
      for (let i = 0; i < 20; ++i) {
        const again = () => cache.getOrLoad('k' + i, () => i, { force: i % 2 === 0 }).then(again, () => {});
        again();
        cache.getOrLoad('hung' + i, () => new Promise(() => {})).catch(() => {});
        group.do('g' + (i >> 1), () => new Promise(() => {})).catch(() => {});
        client.lock('l', { ttl: '10s' }).catch(() => {});
      }
      parentPort.postMessage('going');
      ${how === 'exit' ? 'setTimeout(() => process.exit(3), 5);' : ''}
      ${how === 'throw' ? "setTimeout(() => { throw new Error('uncaught'); }, 5);" : ''}
    })();
  \`;
  for (let round = 0; round < 10; ++round) {
    await Promise.all([1, 2, 3].map(async () => {
      const worker = new Worker(text, { eval: true, execArgv: [], workerData: url });
      worker.on('error', () => {});
      const ended = new Promise((resolve) => worker.on('exit', resolve));
      await new Promise((resolve) => worker.on('message', resolve).on('exit', resolve));
      ${how === 'terminate' ? 'setTimeout(() => worker.terminate(), Math.random() * 10);' : ''}
      await ended;
    }));
  }
  console.log('all ended');
  ${inMain ? 'await mine.close({ wait: 0 });' : ''}
`;

describe('30 workers with calls in flight end cleanly', () => {
  for (const how of ['terminate', 'exit', 'throw']) {
    for (const inMain of [true, false]) {
      for (const kind of ['memory', 'redis']) {
        test(`by ${how}, the addon loaded ${inMain ? 'in main too' : 'only in workers'}, on ${kind}`, async () => {
          const url = kind === 'memory' ? 'memory://shared' : redis.url;
          const end = await runWell(matrix(how, inMain), { args: [url] });
          assert.equal(end.out, 'all ended\n', end.err);
        });
      }
    }
  }
});

const busy = `
  import { connect } from 'stanchion';
  const client = connect(process.argv[1]);
  const cache = client.cache('c', { ttl: '5m' });
  const lock = await client.lock('held-' + process.pid, { ttl: '10s' });
  for (let i = 0; i < 100; ++i) {
    const again = () => cache.getOrLoad('k' + i, () => i, { force: true }).then(again, () => {});
    again();
    cache.getOrLoad('hung', () => new Promise(() => {})).catch(() => {});
    client.lock('held-' + process.pid, { ttl: '10s' }).catch(() => {});
  }
`;

describe('a process with work in flight', () => {
  for (const kind of ['memory', 'redis']) {
    const url = () => (kind === 'memory' ? 'memory://' : redis.url);
    test(`ends by process.exit with its code, on ${kind}`, async () => {
      for (const delay of [0, 1, 5, 20]) {
        const end = await run(`${busy} setTimeout(() => process.exit(7), ${delay});`, { args: [url()] });
        assert.deepEqual([end.code, end.signal, end.err], [7, null, '']);
      }
    });
    test(`ends by an uncaught error with that error, on ${kind}`, async () => {
      const end = await run(`${busy} setTimeout(() => { throw new Error('uncaught'); }, 5);`, { args: [url()] });
      assert.equal(end.code, 1);
      assert.match(end.err, /Error: uncaught/);
    });
    test(`ends by SIGTERM, on ${kind}`, async () => {
      const end = await run(`${busy} setTimeout(() => process.kill(process.pid, 'SIGTERM'), 5);`, { args: [url()] });
      assert.equal(end.signal, 'SIGTERM');
    });
    test(`closes while calls go on, and then ends by itself, on ${kind}`, async () => {
      const end = await runWell(`${busy} await client.close({ wait: 50 }); console.log(lock.held);`, { args: [url()] });
      assert.equal(end.out, 'false\n');
    });
  }
});

test('workers share a memory store, each by a client of its own', async () => {
  const end = await runWell(`
    import { Worker } from 'node:worker_threads';
    import { once } from 'node:events';
    import { connect } from 'stanchion';
    const cache = connect('memory://shop').cache('c', { ttl: '5m' });
    await cache.set('k', 'from main');
    const worker = new Worker(\`
      const { connect } = require('stanchion');
      const { parentPort } = require('node:worker_threads');
      connect('memory://shop').cache('c', { ttl: '5m' }).get('k').then((value) => parentPort.postMessage(value));
    \`, { eval: true, execArgv: [] });
    console.log((await once(worker, 'message'))[0]);
  `);
  assert.equal(end.out, 'from main\n');
});

test('a worker that is terminated does not stall another', async () => {
  const end = await runWell(`
    import { once } from 'node:events';
    import { Worker } from 'node:worker_threads';
    const text = \`
      const { parentPort, threadId, workerData } = require('node:worker_threads');
      const cache = require('stanchion').connect(workerData).cache('of-' + threadId, { ttl: '5m' });
      let n = 0;
      const again = () => cache.getOrLoad('k' + (n += 1), () => n, { force: true }).then(again);
      again();
      setInterval(() => parentPort.postMessage(n), 10);
    \`;
    const [first, second] = [1, 2].map(() => new Worker(text, { eval: true, execArgv: [], workerData: process.argv[1] }));
    await Promise.all([once(first, 'message'), once(second, 'message')]);
    await first.terminate();
    const [before] = await once(second, 'message');
    let now = before;
    for (let i = 0; i < 200 && now < before + 10; ++i) [now] = await once(second, 'message');
    console.log(now >= before + 10);
    process.exit(0);
  `, { args: [redis.url] });
  assert.equal(end.out, 'true\n');
});

test('1,000 loads of the package by one thread do not crash', async () => {
  const end = await runWell(`
    import { createRequire } from 'node:module';
    const require = createRequire(process.cwd() + '/x.js');
    for (let i = 0; i < 1000; ++i) {
      for (const file of Object.keys(require.cache)) delete require.cache[file];
      const { connect } = require('stanchion');
      if (i % 50 === 0) {
        const client = connect();
        const value = await client.cache('c', { ttl: '5m' }).getOrLoad('k', () => i);
        if (value !== i) throw new Error('wrong');
        await client.close();
      }
    }
    console.log('fine');
  `);
  assert.equal(end.out, 'fine\n');
});

test('1,000 vm contexts, each with the package and the addon of its own, do not crash', async () => {
  const end = await runWell(`
    import { readFileSync } from 'node:fs';
    import { createRequire } from 'node:module';
    import path from 'node:path';
    import vm from 'node:vm';
    const require = createRequire(process.cwd() + '/x.js');
    const main = require.resolve('stanchion');
    const parameters = ['exports', 'require', 'module', '__filename', '__dirname'];
    function load(file, context, modules) {
      if (modules.has(file)) return modules.get(file).exports;
      const module = vm.runInContext('({ exports: {} })', context); // the addon belongs to the context of this object
      modules.set(file, module);
      if (file.endsWith('.node')) {
        process.dlopen(module, file);
        return module.exports;
      }
      const next = (name) => {
        if (name === 'node:module') return { createRequire: () => next };
        return path.isAbsolute(name) || name.startsWith('.') ? load(path.resolve(path.dirname(file), name), context, modules) : require(name);
      };
      const run = vm.compileFunction(readFileSync(file, 'utf8'), parameters, { parsingContext: context, filename: file });
      run(module.exports, next, module, file, path.dirname(file));
      return module.exports;
    }
    for (let i = 0; i < 1000; ++i) {
      const context = vm.createContext({ process, Buffer, performance, setImmediate, AbortController, TextDecoder });
      const { connect, StanchionError } = load(main, context, new Map());
      if (i % 10 !== 0) continue;
      const client = connect('memory://shared');
      const cache = client.cache('c', { ttl: '5m' });
      if (await cache.getOrLoad('k' + i, () => i) !== i) throw new Error('a wrong value');
      const error = await cache.get('').catch((thrown) => thrown);
      if (!(error instanceof StanchionError) || error instanceof Error) throw new Error('an error of another context');
      await client.close();
    }
    console.log('fine');
  `);
  assert.equal(end.out, 'fine\n');
});

test('a call that is refused keeps no process alive', async () => {
  const end = await runWell(`
    import { connect } from 'stanchion';
    const client = connect();
    const cache = client.cache('c', { ttl: '5m' });
    const group = client.group();
    const wrong = '5 minuets';
    const load = () => 1;
    const calls = {
      ttl: () => cache.getOrLoad('k', load, { ttl: wrong }),
      softTtl: () => cache.getOrLoad('k', load, { softTtl: wrong }),
      wait: () => cache.getOrLoad('k', load, { wait: wrong }),
      loader: () => cache.getOrLoad('k', 1),
      key: () => cache.getOrLoad('', load),
      get: () => cache.get(''),
      lookup: () => cache.lookup(1),
      set: () => cache.set('k', 1, { ttl: wrong }),
      invalidate: () => cache.invalidate('k', { wait: wrong }),
      group: () => group.do('k', load, { wait: wrong }),
      groupKey: () => group.call('', load),
      lock: () => client.lock('k', { ttl: '1s', wait: wrong }),
      tick: () => client.tick('k', { every: wrong }, load),
      once: () => client.once('k', { ttl: wrong }),
    };
    for (const [name, call] of Object.entries(calls)) {
      const error = await call().then(() => undefined, (thrown) => thrown);
      if (error?.code !== 'invalid_argument') throw new Error(name + ': ' + error);
    }
    console.log('fine');
  `);
  assert.equal(end.out, 'fine\n');
});
