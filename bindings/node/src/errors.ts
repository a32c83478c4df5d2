// SPDX-License-Identifier: MIT

import { native, type ErrorValues } from './native.js';

/**
 * What went wrong, as the core tells it. `timeout`, `busy`, `uncertain` and `unavailable` are different things:
 * `uncertain` means that the reply was lost, so it may have been applied or not.
 */
export type StanchionErrorCode =
  | 'absent' | 'invalid_argument' | 'unknown_option' | 'too_large' | 'collision' | 'undecodable' | 'load_failed'
  | 'would_deadlock' | 'overloaded' | 'busy' | 'timeout' | 'cancelled' | 'uncertain' | 'lost' | 'not_mine' | 'refused'
  | 'unavailable' | 'denied' | 'not_redis' | 'unsupported' | 'closed' | 'forked' | 'no_memory' | 'internal';

const nameOf = new Map(Object.entries(native.statuses).map(([name, number]) => [number, name as StanchionErrorCode]));

/** @internal */
export const status = native.statuses as Readonly<Record<StanchionErrorCode | 'ok', number>>;

/** Every error of this package. What a loader or a body throws is passed on as it is, and is none of these. */
export class StanchionError extends Error {
  override readonly name: string = 'StanchionError';
  /** What happened, for programs. */
  readonly code: StanchionErrorCode;
  /** The key or name it is about. */
  readonly key: string | undefined;
  /** The store's own error line, unchanged. */
  readonly serverText: string | undefined;
  /** The same call may well succeed later, unchanged. */
  readonly retryable: boolean;
  /** A command was sent whose reply is unknown. */
  readonly mayHaveApplied: boolean;

  constructor(code: StanchionErrorCode, message: string, more: Partial<Pick<StanchionError, 'key' | 'serverText'>> = {},
              flags = 0) {
    super(message);
    this.code = code;
    this.key = more.key;
    this.serverText = more.serverText;
    this.retryable = (flags & 1) !== 0;
    this.mayHaveApplied = (flags & 4) !== 0;
  }
}

/** Why a lock is held no longer. */
export type LossReason = 'expired' | 'deleted' | 'stolen' | 'max_hold' | 'closed' | 'lost';

/** The reason of a lock's `signal`, and what `withLock` rejects with if the lock was lost under its body. */
export class LockLostError extends StanchionError {
  override readonly name = 'LockLostError';
  /** Why it was lost. */
  readonly reason: LossReason;

  constructor(lock: string, reason: LossReason) {
    super('lost', `the lock "${lock}" is held no longer: ${reason}`, { key: lock });
    this.reason = reason;
  }
}

/** @internal */
export function errorOf(code: number, values: ErrorValues): StanchionError {
  const [message, key, serverText, flags] = values;
  const error = new StanchionError(nameOf.get(code) ?? 'internal', message, { key, serverText }, flags);
  Error.captureStackTrace(error, errorOf);
  return error;
}

/** @internal */
export function invalid(message: string, key?: string): StanchionError {
  return new StanchionError('invalid_argument', message, { key });
}

const reasonNames = new Map(Object.entries(native.reasons).map(([name, number]) => [number, name]));
/** @internal */
export const reasonName = (reason: number): string => reasonNames.get(reason) ?? 'none';

native.set_make_error(errorOf);
