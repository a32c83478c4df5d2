// SPDX-License-Identifier: MIT

import { channel } from 'node:diagnostics_channel';

import { channels } from './channels.js';

/** A run of a loader. */
export interface LoadInfo {
  /** Name of the cache; undefined in a group. */
  readonly cache: string | undefined;
  readonly key: unknown;
}

type Around = <R extends { ok: boolean }>(info: LoadInfo, run: () => Promise<R>) => Promise<R>;

const loads = channel(channels.load);
let around: Around | undefined;

/** Has every run of a loader go through `wrap`. @internal */
export function wrapLoads(wrap: Around | undefined): void {
  around = wrap;
}

/** Runs a loader, observed. @internal */
export async function observed<R extends { ok: boolean }>(info: LoadInfo, run: () => Promise<R>): Promise<R> {
  if (!around && !loads.hasSubscribers) return run();
  const began = performance.now();
  const outcome = await (around ? around(info, run) : run());
  if (loads.hasSubscribers) loads.publish({ ...info, ms: performance.now() - began, ok: outcome.ok });
  return outcome;
}
