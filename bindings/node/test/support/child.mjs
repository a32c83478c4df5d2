// SPDX-License-Identifier: MIT
//
// A program in a process of its own, and how it ended.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export const packageFolder = fileURLToPath(new URL('../..', import.meta.url));

/** Runs ES module text; gives { code, signal, out, err, ms }. */
export async function run(text, { args = [], flags = [], timeout = 60_000, env = {} } = {}) {
  const began = performance.now();
  const child = spawn(process.execPath, [...flags, '--input-type=module', '-e', text, '--', ...args], {
    cwd: packageFolder, env: { ...process.env, NODE_TEST_CONTEXT: '', ...env }, stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (data) => (out += data));
  child.stderr.on('data', (data) => (err += data));
  const timer = setTimeout(() => child.kill('SIGKILL'), timeout);
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  return { code, signal, out, err, ms: performance.now() - began };
}

/** The same, and it has to end well. */
export async function runWell(text, options) {
  const end = await run(text, options);
  if (end.code !== 0) throw new Error(`ended with ${end.code ?? end.signal} after ${end.ms | 0} ms:\n${end.err}${end.out}`);
  return end;
}
