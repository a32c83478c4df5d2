// SPDX-License-Identifier: MIT
//
// `stanchion/opentelemetry`: counters and spans by @opentelemetry/api, which is an optional peer.

import { metrics, SpanStatusCode, trace, type Meter, type Tracer } from '@opentelemetry/api';

import type { Client } from './client.js';
import { wrapLoads } from './hooks.js';

/**
 * Observes a client's counters as `stanchion.<name>`, with the attribute `stanchion.client`. Gives a function that stops
 * it.
 */
export function observe(client: Client, options: { meter?: Meter; client?: string } = {}): () => void {
  const meter = options.meter ?? metrics.getMeter('stanchion');
  const attributes = { 'stanchion.client': options.client ?? 'default' };
  const counters = Object.keys(client.stats()).map((name) => [name, meter.createObservableCounter(`stanchion.${name}`)] as const);
  const instruments = counters.map(([, counter]) => counter);
  const read = (result: { observe(counter: (typeof instruments)[number], value: number, of: typeof attributes): void }): void => {
    const stats = client.stats();
    for (const [name, counter] of counters) result.observe(counter, stats[name] ?? 0, attributes);
  };
  meter.addBatchObservableCallback(read, instruments);
  return () => meter.removeBatchObservableCallback(read, instruments);
}

/**
 * Makes a span `stanchion.load` of every run of a loader in this process, active while it runs; its parent is the caller's.
 * Keys are not recorded unless `keys` says so. Gives a function that stops it.
 */
export function traceLoads(options: { tracer?: Tracer; keys?: boolean } = {}): () => void {
  const tracer = options.tracer ?? trace.getTracer('stanchion');
  wrapLoads((info, run) => tracer.startActiveSpan('stanchion.load', async (span) => {
    if (info.cache !== undefined) span.setAttribute('stanchion.cache', info.cache);
    if (options.keys) span.setAttribute('stanchion.key', String(info.key));
    const outcome = await run();
    if (!outcome.ok) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
    return outcome;
  }));
  return () => wrapLoads(undefined);
}
