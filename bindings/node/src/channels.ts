// SPDX-License-Identifier: MIT

import { channel } from 'node:diagnostics_channel';

/**
 * `diagnostics_channel` names. Messages are plain objects:
 * `notice` `{ kind, text }` of a client, what an operator wants to know; `backgroundError` `{ error, what, key }` of work
 * that nobody waits for; `fill` `{ cache, key, status }`, what became of the write of a loaded value; `load` `{ cache, key, ms, ok }`, a run of a
 * loader.
 */
export const channels = {
  notice: 'stanchion:notice',
  backgroundError: 'stanchion:background-error',
  fill: 'stanchion:fill',
  load: 'stanchion:load',
} as const;

const errors = channel(channels.backgroundError);

/** Tells of a failure that nobody waits for; never an unhandled rejection. @internal */
export function tellError(error: unknown, what: string, key: unknown): void {
  if (errors.hasSubscribers) errors.publish({ error, what, key });
}
