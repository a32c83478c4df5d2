// SPDX-License-Identifier: MIT
//
// `stanchion/prometheus`: the counters of clients for prom-client, which is an optional peer.

import { Counter, register as defaultRegister, type Registry } from 'prom-client';

import type { Client } from './client.js';

/** How to collect. */
export interface CollectOptions {
  /** Default: prom-client's own. */
  register?: Registry;
  /** Value of the label `client`. Default "default". */
  client?: string;
}

const collected = new WeakMap<Registry, Map<string, Client>>();

/**
 * Adds a client to a registry, as counters `stanchion_<name>_total{client="..."}`; the names and their meanings are those
 * of `client.stats()`. Another client of the same label takes the place of the first.
 */
export function collect(client: Client, options: CollectOptions = {}): void {
  const registry = options.register ?? defaultRegister;
  const label = options.client ?? 'default';
  const clients = collected.get(registry);
  if (clients) {
    clients.set(label, client);
    return;
  }
  const all = new Map([[label, client]]);
  collected.set(registry, all);
  for (const name of Object.keys(client.stats())) {
    new Counter({
      name: `stanchion_${name}_total`,
      help: `Stanchion: ${name.replaceAll('_', ' ')}, since the client was opened`,
      labelNames: ['client'],
      registers: [registry],
      collect() {
        this.reset();
        for (const [of, one] of all) this.inc({ client: of }, one.stats()[name] ?? 0);
      },
    });
  }
}
