// SPDX-License-Identifier: MIT

import { native, type ClientHandle, type TickHandle } from './native.js';
import { reasonName } from './errors.js';
import { tellError } from './channels.js';
import { checkKey, optionsJson, type Duration, type Key } from './options.js';
import { ask, held, Kind, ours, settled } from './runtime.js';

/** Slots of a tick. */
export interface TickOptions {
  /** How long a slot is. */
  every: Duration;
  /** When slots begin after midnight UTC: "2h" with "24h". Default 0. */
  offset?: Duration | undefined;
  /** A run that tells nothing counts as dead after that. Default: `every`. */
  atMost?: Duration | undefined;
  /** Ends the asking. */
  signal?: AbortSignal | undefined;
}

/** The run of one slot. */
export interface TickRun {
  /** When the slot began, ms since the epoch by the store's clock. */
  readonly slot: number;
  /** As of a lock. */
  readonly fence: number;
  /** As of a lock. */
  readonly token: string;
}

/** Whether the body ran. */
export type TickResult<V> =
  | { ran: true; reason: undefined; value: V }
  /** `taken`: the slot was given out. `still_running`: the run of an earlier slot goes on. */
  | { ran: false; reason: 'taken' | 'still_running'; value: undefined };

/** @internal */
export async function tick<V>(client: ClientHandle, name: Key, options: TickOptions,
                              body: (run: TickRun) => V | PromiseLike<V>): Promise<TickResult<V>> {
  checkKey(name);
  const json = optionsJson(options, ['signal']);
  const { signal } = options;
  const answer = settled(await ask((tag) => native.tick_acquire(client, name, json, undefined, ours(), tag), signal), signal);
  if (answer.kind !== Kind.tick) {
    return { ran: false, reason: reasonName(answer.reason) as 'taken' | 'still_running', value: undefined };
  }
  const handle = answer.extra as TickHandle;
  const run = { slot: native.tick_slot_ms(handle), fence: native.tick_fence(handle), token: native.tick_token(handle) };
  const end = async (ok: boolean): Promise<void> => {
    try {
      settled(await ask((tag) => native.tick_done(handle, ok, undefined, ours(), tag)));
    } catch (error) {
      tellError(error, 'tick', name); // the run is over all the same; the core goes on telling the store
    }
  };
  let value: V;
  try {
    value = await held(() => body(run));
  } catch (error) {
    await end(false);
    throw error;
  }
  await end(true);
  return { ran: true, reason: undefined, value };
}
