// SPDX-License-Identifier: MIT
//
// A redis-server of our own, on a free port of the loopback.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as dial, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Sends one command as words, gives the raw reply. */
export async function command(port, ...words) {
  const socket = dial(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`*${words.length}\r\n${words.map((w) => `$${Buffer.byteLength(w)}\r\n${w}\r\n`).join('')}`);
  const [reply] = await once(socket, 'data');
  socket.destroy();
  return reply.toString();
}

/** `args`: more arguments of the server; `port`: that one, and no other. */
export async function startRedis({ args = [], port: given } = {}) {
  for (let attempt = 0; ; ++attempt) {
    const port = given ?? await freePort();
    const child = spawn(process.env.STN_REDIS_SERVER ?? 'redis-server',
      ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...args.map(String)], { stdio: 'ignore' });
    const kill = () => child.kill('SIGKILL');
    process.on('exit', kill);
    for (let i = 0; i < 100 && child.exitCode === null; ++i) {
      const up = await command(port, 'PING').catch(() => '');
      if (up.startsWith('+PONG')) {
        return {
          port,
          url: `redis://127.0.0.1:${port}`,
          command: (...words) => command(port, ...words),
          /** Keys whose names contain the text. */
          keys: async (part) => (await command(port, 'KEYS', `*${part}*`)).split('\r\n').filter((l) => l.includes(part)),
          async stop() {
            process.off('exit', kill);
            kill();
            if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
          },
        };
      }
      await sleep(20);
    }
    process.off('exit', kill);
    kill();
    if (attempt === 3) throw new Error('redis-server does not start');
  }
}
