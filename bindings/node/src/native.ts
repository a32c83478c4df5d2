// SPDX-License-Identifier: MIT
//
// The addon: where it is found, and what it has. `../native/calls.cpp` is the other side.

import { createRequire } from 'node:module';
import * as path from 'node:path';

declare const kind: unique symbol;
/** A handle of the C ABI; freed by the garbage collector, or by `free_handle`. */
type Handle<K extends string> = { readonly [kind]: K };
export type ClientHandle = Handle<'client'>;
export type QueueHandle = Handle<'queue'>;
export type CacheHandle = Handle<'cache'>;
export type PolicyHandle = Handle<'policy'>;
export type GroupHandle = Handle<'group'>;
export type LeaseHandle = Handle<'lease'>;
export type FlightHandle = Handle<'flight'>;
export type ScopeHandle = Handle<'scope'>;
export type LockHandle = Handle<'lock'>;
export type LockPolicyHandle = Handle<'lock_policy'>;
export type TickHandle = Handle<'tick'>;
export type EventHandle = Handle<'event'>;

/** UTF-8 or bytes. */
export type Bytes = string | Uint8Array;
/** Message, key, the store's words, flags. */
export type ErrorValues = [string, string | undefined, string | undefined, number];
/** What a drain left beside the table: text and bytes of all rows, and what is no number, by row. */
export type Drained = [string | undefined, Buffer | undefined, unknown[] | undefined];

type Ms = number | undefined;
type Scope = ScopeHandle | undefined;
/** The number of an operation: a bigint from 2^53 on. */
export type Op = number | bigint;

export interface Native {
  readonly version: string;
  readonly statuses: Readonly<Record<string, number>>;
  readonly reasons: Readonly<Record<string, number>>;
  set_make_error(make: (status: number, values: ErrorValues) => Error): void;
  duration_parse(text: string): number;
  free_handle(handle: Handle<string>): void;

  client_open(url: string, options: string): ClientHandle;
  client_ready(client: ClientHandle, deadline: Ms, queue: QueueHandle, tag: number): void;
  client_close_begin(client: ClientHandle, deadline: Ms, queue: QueueHandle, tag: number): void;
  client_advance(client: ClientHandle, ms: number): void;
  client_watch(client: ClientHandle, mask: number, queue: QueueHandle, tag: number): void;
  client_stats_json(client: ClientHandle, cache?: CacheHandle): string;

  queue_new(scope?: number): QueueHandle;
  queue_drain(queue: QueueHandle, timeout: number, table: Float64Array, out: Drained): number;
  queue_keep(queue: QueueHandle, row: number): EventHandle | undefined;
  queue_set_doorbell(queue: QueueHandle, ring: () => void): void;
  queue_hold_process(queue: QueueHandle, hold: boolean): void;
  queue_close(queue: QueueHandle): void;
  cancel(queue: QueueHandle, op: Op): void;

  cache_open(client: ClientHandle, name: string, options: string): CacheHandle;
  policy_new(cache: CacheHandle, options: string): PolicyHandle;
  cache_fetch(cache: CacheHandle, policy: PolicyHandle | undefined, key: Bytes, deadline: Ms, flags: number, within: Scope,
              queue: QueueHandle, tag: number): Op;
  cache_refetch(cache: CacheHandle, policy: PolicyHandle | undefined, undecodable: EventHandle, deadline: Ms,
                within: Scope, queue: QueueHandle, tag: number): Op;
  cache_get(cache: CacheHandle, key: Bytes, deadline: Ms, queue: QueueHandle, tag: number): Op;
  cache_put(cache: CacheHandle, policy: PolicyHandle | undefined, key: Bytes, value: Bytes, codec: number, ttl: Ms,
            softTtl: Ms, deadline: Ms, queue: QueueHandle, tag: number): Op;
  cache_invalidate(cache: CacheHandle, key: Bytes, flags: number, deadline: Ms, queue: QueueHandle, tag: number): Op;

  lease_fulfil(lease: LeaseHandle, value: Bytes, codec: number, ttl: Ms, softTtl: Ms, ref: number,
               queue: QueueHandle | undefined, tag: number): number;
  lease_fulfil_absent(lease: LeaseHandle, ttl: Ms, ref: number, queue: QueueHandle | undefined, tag: number): number;
  lease_fail(lease: LeaseHandle, code: number, text: string | undefined, ref: number): number;
  lease_detach(lease: LeaseHandle): number;
  lease_state(lease: LeaseHandle): number;
  lease_scope(lease: LeaseHandle): Scope;

  group_new(client: ClientHandle | undefined, options: string): GroupHandle;
  group_join(group: GroupHandle, key: Bytes, deadline: Ms, within: Scope, queue: QueueHandle,
             tag: number): FlightHandle | Op;
  group_forget(group: GroupHandle, key: Bytes): void;
  flight_finish(flight: FlightHandle, code: number, value: Bytes | undefined, ref: number): number;
  flight_detach(flight: FlightHandle): number;
  flight_scope(flight: FlightHandle): Scope;

  lock_policy_new(options: string): LockPolicyHandle;
  lock_acquire(client: ClientHandle, name: Bytes, options: string | undefined, policy: LockPolicyHandle | undefined,
               deadline: Ms, within: Scope, queue: QueueHandle, tag: number, lossQueue: QueueHandle | undefined,
               lossTag: number): Op;
  lock_held(lock: LockHandle): boolean;
  lock_remaining_ms(lock: LockHandle): number;
  lock_fence(lock: LockHandle): number;
  lock_token(lock: LockHandle): string;
  lock_state(lock: LockHandle): number;
  lock_loss(lock: LockHandle): number;
  lock_renew(lock: LockHandle, deadline: Ms, queue: QueueHandle, tag: number): void;
  lock_release(lock: LockHandle, deadline: Ms, queue: QueueHandle | undefined, tag: number): void;
  lock_leave(lock: LockHandle): void;
  lock_inspect(client: ClientHandle, name: Bytes, key: Bytes | undefined, deadline: Ms, queue: QueueHandle,
               tag: number): Op;

  tick_acquire(client: ClientHandle, name: Bytes, options: string, deadline: Ms, queue: QueueHandle, tag: number): Op;
  tick_slot_ms(tick: TickHandle): number;
  tick_fence(tick: TickHandle): number;
  tick_token(tick: TickHandle): string;
  tick_done(tick: TickHandle, ok: boolean, deadline: Ms, queue: QueueHandle | undefined, tag: number): void;
  once(client: ClientHandle, id: Bytes, ttl: number, deadline: Ms, queue: QueueHandle, tag: number): Op;
}

/** Where the addon may be: named by STANCHION_NATIVE, else below prebuilds/ of this package, for this platform. */
function places(): string[] {
  const named = process.env['STANCHION_NATIVE'];
  if (named) return [path.resolve(named)];
  const platform = `${process.platform}-${process.arch}`;
  const folders = process.platform === 'linux' ? [platform, `${platform}-musl`] : [platform]; // glibc's does not load on musl
  return folders.map((folder) => path.join(__dirname, '..', 'prebuilds', folder, 'stanchion.node'));
}

function load(): Native {
  const tried = [];
  for (const place of places()) {
    try {
      return createRequire(__filename)(place) as Native;
    } catch (error) {
      tried.push(`  ${place}\n    ${(error as Error).message}`);
    }
  }
  throw new Error(
    `stanchion: there is no addon for ${process.platform}-${process.arch}, Node ${process.version}. Tried:\n` +
      `${tried.join('\n')}\nTo build it, in a checkout of Stanchion:\n  (cd bindings/node && npm ci --ignore-scripts)\n` +
      '  cmake --preset release -DSTN_NODE=ON && cmake --build build/release --target stanchion_node\n' +
      'then set STANCHION_NATIVE to the file stanchion.node, or copy it to the place above.',
  );
}

export const native = load();
