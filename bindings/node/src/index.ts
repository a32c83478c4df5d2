// SPDX-License-Identifier: MIT

export { connect, type Client, type ClientOptions, type LockInspection } from './client.js';
export type {
  Cache, CacheLoadContext, CacheOptions, InvalidateOptions, Loader, LoadOptions, Lookup, SetOptions, Wrapped, WrapOptions,
} from './cache.js';
export type { Codec, CodecPair } from './codec.js';
export type { Group, GroupOptions, GroupResult } from './group.js';
export type { LoadContext } from './load.js';
export type { Lock, LockOptions } from './lock.js';
export type { TickOptions, TickResult, TickRun } from './tick.js';
export { LockLostError, StanchionError, type LossReason, type StanchionErrorCode } from './errors.js';
export type { Duration, Key } from './options.js';
export { channels } from './channels.js';
