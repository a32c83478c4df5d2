// SPDX-License-Identifier: MIT

import { native, type ClientHandle, type LockHandle, type LockPolicyHandle } from './native.js';
import { LockLostError, reasonName, StanchionError, status, type LossReason } from './errors.js';
import { tellError } from './channels.js';
import { within } from './load.js';
import { checkKey, milliseconds, optionsJson, type Duration, type Key } from './options.js';
import { ask, forget, held, Kind, listen, ours, reasonOf, settled, type Listener } from './runtime.js';

/** How a lock is taken and kept. */
export interface LockOptions {
  /** A holder that has died blocks others for that long at most. Renewed for as long as it is held. */
  ttl: Duration;
  /** How long to wait for it. Default 10 s; `Infinity` = for ever. */
  wait?: Duration | undefined;
  /** Renew it, on a thread of the library: a blocked event loop does not lose it. Default true. */
  renew?: boolean | undefined;
  /** Then it is lost (reason `max_hold`) and released: for holders that may hang. */
  maxHold?: Duration | undefined;
  /** Shown to whoever inspects the key. */
  label?: string | undefined;
  /** The store's key itself, for locks shared with programs that use `SET key token NX PX`. */
  key?: string | undefined;
  /** Ends the waiting: the call rejects with `signal.reason`, and no key is left behind. */
  signal?: AbortSignal | undefined;
}

const policies = new Map<string, LockPolicyHandle>();

function policyOf(options: LockOptions): LockPolicyHandle {
  const json = optionsJson(options, ['signal', 'wait']);
  let policy = policies.get(json);
  if (!policy) {
    policy = native.lock_policy_new(json);
    if (policies.size < 256) policies.set(json, policy);
  }
  return policy;
}

/** Hears that a lock was lost, perhaps before its caller has it. */
class Loss implements Listener {
  readonly tag = listen(this);
  error: LockLostError | undefined;
  private controller: AbortController | undefined;

  constructor(private readonly name: string) {}

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.error) this.controller.abort(this.error);
    }
    return this.controller.signal;
  }

  hear(kind: Kind, row: number): boolean {
    if (kind !== Kind.lockLost) return false;
    this.error = new LockLostError(this.name, reasonName(reasonOf(row)) as LossReason);
    this.controller?.abort(this.error);
    return true;
  }
}

/**
 * A lock in your hands: best-effort coordination, not consensus. Effects that must not happen twice are protected by the
 * database: pass `fence` along (`UPDATE ... WHERE id = :id AND fence <= :fence`).
 *
 * It stays held until `release`, loss, or the end of its client or process; dropping the object does not release it.
 */
export class Lock implements AsyncDisposable {
  private released: Promise<void> | undefined;

  /** @internal */
  constructor(readonly name: string, private readonly handle: LockHandle, private readonly loss: Loss) {}

  /** A number that is larger for every later grant of this name. */
  get fence(): number {
    return native.lock_fence(this.handle);
  }
  /** The token in the store's key, as 32 hexadecimal digits. */
  get token(): string {
    return native.lock_token(this.handle);
  }
  /** Surely held at this moment, by the local clock alone. Ask before each effect. */
  get held(): boolean {
    return native.lock_held(this.handle);
  }
  /** For how long it is surely held if nothing more is heard of the store; 0: it is not. */
  get remainingMs(): number {
    return native.lock_remaining_ms(this.handle);
  }
  /** Aborted when the lock is lost, with a `LockLostError` as its reason. Not by `release`. */
  get signal(): AbortSignal {
    return this.loss.signal;
  }

  /** Gives it back: not held from this moment on. Rejects if it was lost before, or nobody knows. Again: the same promise. */
  release(options: { wait?: Duration } = {}): Promise<void> {
    this.released ??= this.giveBack(milliseconds(options.wait));
    return this.released;
  }

  private async giveBack(wait: number | undefined): Promise<void> {
    try {
      if (this.loss.error) throw this.loss.error;
      settled(await ask((tag) => native.lock_release(this.handle, wait, ours(), tag)));
    } catch (error) {
      throw this.loss.error ?? error;
    } finally {
      forget(this.loss.tag);
    }
  }

  /** Renews it now; renewal goes by itself, so this is rarely needed. */
  async renew(options: { wait?: Duration } = {}): Promise<void> {
    settled(await ask((tag) => native.lock_renew(this.handle, milliseconds(options.wait), ours(), tag)));
  }

  /** Releases; never throws. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release();
    } catch (error) {
      tellError(error, 'release', this.name);
    }
  }
}

/** The lock, or why it is busy. @internal */
export async function acquire(client: ClientHandle, name: Key, options: LockOptions,
                              deadline: Duration | undefined): Promise<Lock | StanchionError> {
  checkKey(name);
  const policy = policyOf(options);
  const loss = new Loss(String(name));
  try {
    const answer = await ask((tag) => native.lock_acquire(client, name, undefined, policy, milliseconds(deadline), within(),
      ours(), tag, ours(), loss.tag), options.signal);
    if (answer.kind === Kind.lock) return new Lock(String(name), answer.extra as LockHandle, loss);
    if (answer.status !== status.busy) settled(answer, options.signal);
    forget(loss.tag);
    return answer.error() as StanchionError;
  } catch (error) {
    forget(loss.tag);
    throw error;
  }
}

/** Runs the body with the lock. @internal */
export async function holding<V>(lock: Lock, body: (lock: Lock) => V | PromiseLike<V>): Promise<V> {
  let value: V;
  try {
    value = await held(() => body(lock));
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
  try {
    await lock.release();
  } catch (error) {
    // That it was lost, the caller must know. That nobody knows, or the store is away: it was held to the end, and ends.
    if (error instanceof StanchionError && (error.code === 'lost' || error.code === 'not_mine')) throw error;
    tellError(error, 'release', lock.name);
  }
  return value;
}
