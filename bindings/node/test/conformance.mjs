// SPDX-License-Identifier: MIT
//
// Runs the scripts of tests/conformance over the addon; their README describes the language. Each script runs in a
// process of its own, so that a crash or a hang fails one script and no more.
//
//   node conformance.mjs FOLDER | SCRIPT...

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { runScript } from './support/script.mjs';

const WATCHDOG_MS = 10_000;
const AT_ONCE = 4;

async function passes(file) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), '--one', file],
    { stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.on('data', (data) => (out += data));
  let late = false;
  const timer = setTimeout(() => child.kill('SIGKILL', (late = true)), WATCHDOG_MS);
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  const told = out.trim().split('\n').at(-1);
  if (late) console.log(`FAILED ${file}: expected an end, came none in ${WATCHDOG_MS} ms`);
  else if (code === 0) console.log(`ok ${file}`);
  else console.log(told.startsWith('FAILED') ? told : `FAILED ${file}: expected an end, came ${code ?? signal}`);
  return code === 0;
}

if (process.argv[2] === '--one') {
  runScript(process.argv[3]);
} else {
  const scripts = process.argv.slice(2).flatMap((name) => (statSync(name).isFile() ? [name] : readdirSync(name)
    .filter((file) => file.endsWith('.txt') && file !== 'CMakeLists.txt').sort().map((file) => path.join(name, file))));
  let passed = 0;
  const todo = scripts.values();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (const script of todo) if (await passes(script)) passed += 1;
  }));
  console.log(`${passed} passed, ${scripts.length - passed} failed`);
  process.exitCode = passed === scripts.length && passed > 0 ? 0 : 1;
}
