// SPDX-License-Identifier: MIT

export { connect, Client, type ClientOptions, type LockInspection } from './client.js';
export {
  Cache, type CacheLoadContext, type CacheOptions, type InvalidateOptions, type Loader, type LoadOptions, type Lookup,
  type SetOptions, type Wrapped, type WrapOptions,
} from './cache.js';
export { type Codec, type CodecPair } from './codec.js';
export { Group, type GroupOptions, type GroupResult } from './group.js';
export { type LoadContext } from './load.js';
export { Lock, type LockOptions } from './lock.js';
export { type TickOptions, type TickResult, type TickRun } from './tick.js';
export { LockLostError, StanchionError, type LossReason, type StanchionErrorCode } from './errors.js';
export { type Duration, type Key } from './options.js';
export { channels } from './channels.js';
