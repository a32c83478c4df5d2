// SPDX-License-Identifier: MIT
//
// What users install: the packed tarball, in an empty project, offline and without install scripts.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import { packageFolder } from './support/child.mjs';
import { startRedis } from './support/redis.mjs';

const exec = promisify(execFile);
const tool = (name) => path.join(packageFolder, 'node_modules', '.bin', name);
let folder;
let redis;
let files;

async function run(file, ...args) {
  try {
    return (await exec(file, args, { cwd: folder, env: { ...process.env, NODE_TEST_CONTEXT: '' } })).stdout;
  } catch (error) {
    throw new Error(`${file} ${args.join(' ')}: ${error.message}\n${error.stdout}`);
  }
}

before(async () => {
  redis = await startRedis();
  folder = await mkdtemp(path.join(tmpdir(), 'stanchion-package-'));
  const packed = await exec('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder],
    { cwd: packageFolder });
  const [{ filename, files: list }] = Object.values(JSON.parse(packed.stdout));
  files = list.map((file) => file.path);
  await writeFile(path.join(folder, 'package.json'), '{ "name": "empty", "private": true }');
  await run('npm', 'install', '--offline', '--ignore-scripts', path.join(folder, filename));
});
after(async () => {
  await redis.stop();
  await rm(folder, { recursive: true });
});

const quickStart = `
const client = connect(process.argv[2]);
const prices = client.cache('prices', { ttl: '5m', softTtl: '4m' });
const price = await prices.getOrLoad('42', async () => ({ cents: 1299 }));
await prices.invalidate('42');
const held = await client.withLock('report', { ttl: '30s' }, async (lock) => lock.held);
await client.close();
console.log(price.cents, held);
`;

async function bothStores(...command) {
  for (const url of ['memory://', redis.url]) assert.equal(await run(process.execPath, ...command, url), '1299 true\n');
}

test('the tarball has what is needed and no more, and installs without a script', async () => {
  assert.ok(files.includes(`prebuilds/${process.platform}-${process.arch}/stanchion.node`));
  assert.deepEqual(files.filter((file) => !/^(dist|prebuilds)\/|^(package\.json|README\.md|LICENSE)$/.test(file)), []);
  const manifest = JSON.parse(await readFile(path.join(folder, 'node_modules/stanchion/package.json'), 'utf8'));
  assert.equal(manifest.gypfile, false);
  assert.deepEqual(Object.keys(manifest.scripts).filter((name) => /install|prepare/.test(name)), []);
  assert.deepEqual(manifest.dependencies ?? {}, {});
});

test('the quick start runs as an ES module', async () => {
  await writeFile(path.join(folder, 'quick.mjs'), `import { connect } from 'stanchion';\n${quickStart}`);
  await bothStores('quick.mjs');
});

test('the quick start runs as CommonJS', async () => {
  await writeFile(path.join(folder, 'quick.cjs'), `const { connect } = require('stanchion');\n(async () => {${quickStart}})();`);
  await bothStores('quick.cjs');
});

test('both kinds of import are one package', async () => {
  await writeFile(path.join(folder, 'one.mjs'), `
    import { createRequire } from 'node:module';
    import * as imported from 'stanchion';
    const required = createRequire(import.meta.url)('stanchion');
    console.log(Object.keys(required).every((name) => required[name] === imported[name]), 'connect' in required);
  `);
  assert.equal(await run(process.execPath, 'one.mjs'), 'true true\n');
});

test('the quick start compiles as strict TypeScript, as either kind of module, and runs', async () => {
  const typed = `import { connect, type Lock, StanchionError, type Cache } from 'stanchion';
interface Price { cents: number }
async function main(): Promise<void> {${quickStart}
  const typed: Cache<Price> = connect().cache<Price>('typed', { ttl: 300_000 });
  const one: Price = await typed.getOrLoad('1', ({ key, signal, fresh }) =>
    fresh({ cents: key.length + Number(signal.aborted) }, { ttl: '1m' }));
  const some: Price | undefined = await typed.get('1');
  const maybe: string | undefined = await connect().cache('m', { ttl: 1 }).getOrLoad('k', (): string | undefined => undefined);
  const find = typed.wrap(async (id: number, city: string): Promise<Price> => ({ cents: id + city.length }),
    { key: (id, city) => \`\${id}/\${city}\` });
  const found: Price = await find(1, 'Oslo');
  const perhaps: Price | undefined = await typed.getOrLoad('2', async (): Promise<Price | undefined> => undefined);
  const search = typed.wrap(async (id: number) => (id < 0 ? undefined : { cents: id }), { key: String });
  const none: Price | undefined = await search(-1);
  // @ts-expect-error: there may be no such thing
  const cents = async (): Promise<number> => (await search(1)).cents;
  // @ts-expect-error: a cache of prices keeps no texts
  const text = (): unknown => typed.getOrLoad('3', () => 'text');
  // @ts-expect-error: the arguments are those of the function
  const wrong = (): unknown => find('1', 2);
  // @ts-expect-error: a lock has a ttl
  const endless = (): unknown => connect().lock('l', {});
  const lock: Lock | null = await connect().tryLock('l', { ttl: '1s' });
  await using mine = lock;
  const seen: [boolean, number, number | undefined, string | undefined] = [mine!.held, one.cents + found.cents, some?.cents, maybe];
  if (seen.length !== 4 || perhaps || none || wrong === endless || cents === text) throw new StanchionError('internal', 'never');
}
void main();
`;
  const types = ['--strict', '--noEmitOnError', '--target', 'es2022', '--lib', 'es2022,esnext.disposable', '--typeRoots',
    path.join(packageFolder, 'node_modules', '@types'), '--types', 'node'];
  await writeFile(path.join(folder, 'typed.mts'), typed);
  await writeFile(path.join(folder, 'typed.cts'), typed);
  await run(tool('tsc'), ...types, '--module', 'node16', 'typed.mts', 'typed.cts');
  await bothStores('typed.mjs');
  await bothStores('typed.cjs');
  await writeFile(path.join(folder, 'bundled.ts'), typed);
  await run(tool('tsc'), ...types, '--noEmit', '--module', 'esnext', '--moduleResolution', 'bundler', 'bundled.ts');
});

test('what the READMEs show runs', async () => {
  const end = 'await client.close();\nconsole.log(price.id);\n';
  const stubs = `async function readPriceFromDatabase(id) { return { id }; }
async function updatePriceInDatabase() {}
async function writeReport() {}
function cleanUp() {}
`;
  for (const file of [path.join(packageFolder, 'README.md'), path.join(packageFolder, '../../README.md')]) {
    const [, code] = /```js\n(import { connect } from 'stanchion';\n[^]*?)```/.exec(await readFile(file, 'utf8'));
    assert.ok(code.includes("'redis://localhost'"));
    const text = `${code.replace("'redis://localhost'", 'process.argv[2]')}${end}${stubs}`;
    await writeFile(path.join(folder, 'readme.mjs'), text);
    for (const url of ['memory://', redis.url]) assert.equal(await run(process.execPath, 'readme.mjs', url), '42\n');
    await redis.command('FLUSHALL');
  }
});

test('the README has every name', async () => {
  const readme = (await readFile(path.join(packageFolder, 'README.md'), 'utf8')).replaceAll(/```[^]*?```/g, '');
  const shown = new Set(readme.match(/`[^`]+`/g).flatMap((code) => code.match(/\w+/g) ?? []));
  const named = Object.keys(await import('stanchion'));
  for (const name of ['client', 'cache', 'group', 'lock', 'tick', 'prometheus', 'opentelemetry', 'errors']) {
    const types = await readFile(path.join(packageFolder, 'dist', `${name}.d.ts`), 'utf8');
    named.push(...[...types.matchAll(/^ {4}(?:readonly |get )?(\w+)[?(:<]/gm)].map(([, member]) => member));
  }
  assert.ok(named.length > 80);
  assert.deepEqual(named.filter((name) => !shown.has(name) && !['constructor', 'default', 'module.exports', '__esModule'].includes(name)), []);
});

test('publint and attw find nothing', async () => {
  await run(tool('publint'), '--strict', packageFolder);
  await run(tool('attw'), '--pack', packageFolder, '--format', 'ascii', '--no-emoji');
});

test('the addon shows what Node looks for and nothing else, and needs no shared OpenSSL', async () => {
  const addon = path.join(folder, `node_modules/stanchion/prebuilds/${process.platform}-${process.arch}/stanchion.node`);
  const symbols = (await run('nm', '-D', '--defined-only', addon)).trim().split('\n').map((line) => line.split(' ').at(-1));
  assert.deepEqual(symbols.sort(), ['napi_register_module_v1', 'node_api_module_get_api_version_v1']);
  const dynamic = await run('readelf', '-d', addon);
  assert.doesNotMatch(dynamic, /RUNPATH|RPATH|libssl|libcrypto|libhiredis|libstanchion/);
  assert.match(dynamic, /NODELETE/);
});

test('where there is no addon, the error says what was tried and how to build it', async () => {
  await writeFile(path.join(folder, 'missing.cjs'), `
    try { require('stanchion'); } catch (error) { console.log(error.message); }`);
  const { stdout } = await exec(process.execPath, ['missing.cjs'],
    { cwd: folder, env: { ...process.env, STANCHION_NATIVE: path.join(folder, 'no.node') } });
  assert.match(stdout, /no\.node/);
  assert.match(stdout, /cmake --preset release -DSTN_NODE=ON/);
});
