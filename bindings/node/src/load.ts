// SPDX-License-Identifier: MIT
//
// A running load: the duty to answer for one key, of a cache (a lease) or of a group (a flight). It runs in its first
// caller's async context, and apart from him: when he goes it goes on for those who joined, if there are any.

import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';

import { native, type FlightHandle, type LeaseHandle, type ScopeHandle } from './native.js';
import { invalid, reasonName, StanchionError, status } from './errors.js';
import { observed } from './hooks.js';
import { extraOf, forget, hold, Kind, ours, Pending, reasonOf, rejected, share, type Answer } from './runtime.js';
import { keyText, type Key } from './options.js';

// Who makes a call: the load whose loader is running in this async context, for the core's search for dead-locks.
const running = new AsyncLocalStorage<ScopeHandle | undefined>();
let loads = 0;

/** The load that makes this call. @internal */
export const within = (): ScopeHandle | undefined => (loads > 0 ? running.getStore() : undefined);

/** What a loader is told. */
export interface LoadContext {
  /** The key, as its caller gave it. */
  readonly key: Key;
  /** Aborted when the load is not worth its while any more: nobody waits, or the lease is gone. */
  readonly signal: AbortSignal;
}

const revocations: Record<string, [code: 'lost' | 'timeout' | 'closed' | 'cancelled', text: string]> = {
  lost: ['lost', 'the lease was lost: the result will not be stored'],
  invalidated: ['lost', 'the key was invalidated: the result will not be stored'],
  max_load: ['timeout', 'the load takes longer than maxLoad'],
  closed: ['closed', 'the client was closed'],
  unwanted: ['cancelled', 'nobody waits for this load any more'],
};

/** How a load ended. @internal */
export type Outcome<T> = { ok: true; value: T } | { ok: false; error: unknown };

/** @internal */
export abstract class Load<T> {
  private controller: AbortController | undefined;
  private stopped: StanchionError | undefined;
  private giveUp: ((error: unknown) => void) | undefined;
  protected ended = false;

  constructor(readonly key: Key, private readonly tag: number, private readonly cache?: string) {}

  protected abstract scope(): ScopeHandle | undefined;
  protected abstract detach(): number;
  /** Answers those who joined with a result; gives what the first caller gets. */
  protected abstract fulfil(result: unknown): T;
  protected abstract fail(code: number, text: string, error: unknown): void;
  protected abstract free(): void;

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.stopped) this.controller.abort(this.stopped);
    }
    return this.controller.signal;
  }

  /** The lease was revoked. */
  revoke(reason: number): void {
    const name = reasonName(reason);
    this.stop(name);
    if (name === 'max_load' || name === 'closed') this.giveUp?.(this.stopped);
  }

  private stop(reason: string): void {
    const [code, text] = revocations[reason] ?? ['lost', reason];
    this.stopped ??= new StanchionError(code, text, { key: keyText(this.key) });
    this.controller?.abort(this.stopped);
  }

  /** Runs the loader and answers for the key. Never rejects. */
  run(loader: () => unknown): Promise<Outcome<T>> {
    return observed({ cache: this.cache, key: this.key }, () => this.runLoader(loader));
  }

  private async runLoader(loader: () => unknown): Promise<Outcome<T>> {
    loads += 1;
    try {
      const result = await running.run(this.scope(), loader);
      return { ok: true, value: this.ended ? (undefined as T) : this.fulfil(result) };
    } catch (error) {
      if (!this.ended) this.failed(error);
      return { ok: false, error };
    } finally {
      loads -= 1;
      if (loads === 0) running.disable(); // while it is on, each promise of the process costs more
      this.end();
    }
  }

  private failed(error: unknown): void {
    const known = error instanceof StanchionError ? status[error.code] : status.load_failed;
    // Stopped because nobody wants it: that is no failure of the source.
    const code = this.stopped && error === this.stopped ? status.cancelled : known;
    let text: string;
    try {
      text = error instanceof Error ? error.message : String(error);
    } catch {
      text = 'the loader failed';
    }
    try {
      this.fail(code < status.absent ? code : status.load_failed, text.replaceAll('\0', ' '), error);
    } catch {
      // Answered already, by its end: nobody waits.
    }
  }

  private end(): void {
    this.ended = true;
    forget(this.tag);
    this.free();
  }

  /** The result for the first caller, who may go, or be told before the loader has ended. While he waits the process lives. */
  lead(work: Promise<Outcome<T>>, signal: AbortSignal | undefined, orphaned: (error: unknown) => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let there = true;
      hold(1);
      const leave = (error: unknown): void => {
        if (!there) return;
        there = false;
        hold(-1);
        reject(error);
      };
      this.giveUp = leave;
      const abort = (): void => {
        leave((signal as AbortSignal).reason);
        if (!this.ended && this.detach() === 0) {
          this.stop('unwanted');
          this.end();
        }
      };
      signal?.addEventListener('abort', abort, { once: true });
      if (signal?.aborted) abort(); // by the loader, or after this load was given out
      void work.then((outcome) => {
        signal?.removeEventListener('abort', abort);
        if (!there) {
          if (!outcome.ok && !this.stopped) orphaned(outcome.error);
          return;
        }
        if (!outcome.ok) return leave(outcome.error);
        there = false;
        hold(-1);
        resolve(outcome.value);
      });
    });
  }
}

// Nobody asks when one is gone.
const resourceOptions = { requireManualDestroy: true };
const soon = Promise.resolve();

/** A call that is answered, or becomes the one that loads. @internal */
export abstract class Candidate<R, Handle extends LeaseHandle | FlightHandle> extends Pending<R> {
  protected load: Load<unknown> | undefined;
  protected readonly scope: ScopeHandle | undefined = within();
  /** The caller's async context, where his loader runs. */
  protected readonly context = new AsyncResource('stanchion', resourceOptions);

  constructor(readonly key: Key, protected readonly signal: AbortSignal | undefined) {
    super();
  }

  /** Loads, and gives what the caller gets. */
  protected abstract lead(handle: Handle): Promise<R>;

  override hear(kind: Kind, row: number): boolean {
    if (kind === Kind.revoked) {
      this.load?.revoke(reasonOf(row));
      return false;
    }
    if (this.gone || (kind !== Kind.lease && kind !== Kind.flight)) return super.hear(kind, row);
    const handle = extraOf(row) as Handle;
    // Later: nothing of the user runs in the midst of a batch.
    void soon.then(() => this.context.runInAsyncScope(this.chosen, this, handle));
    return false;
  }

  protected chosen(handle: Handle): void {
    if (this.gone) { // aborted since
      hold(-1);
      forget(this.tag);
      native.free_handle(handle);
      return;
    }
    this.heard();
    this.settle(this.lead(handle));
  }

  protected override result(answer: Answer, signal?: AbortSignal): Promise<never> {
    return rejected(answer, signal);
  }
}

/** A load of a group's key. @internal */
export class FlightLoad<T> extends Load<T> {
  /** Whether others have the result too. */
  shared = false;

  constructor(private readonly flight: FlightHandle, key: Key, tag: number) {
    super(key, tag);
  }

  protected scope(): ScopeHandle | undefined {
    return native.flight_scope(this.flight);
  }
  protected detach(): number {
    return native.flight_detach(this.flight);
  }
  protected fulfil(result: unknown): T {
    this.shared = share(result, (ref) => native.flight_finish(this.flight, 0, undefined, ref)) > 0;
    return result as T;
  }
  protected fail(code: number, text: string, error: unknown): void {
    share(error, (ref) => native.flight_finish(this.flight, code, text, ref));
  }
  protected free(): void {
    native.free_handle(this.flight);
  }
}

/** How a cache stores what its loaders bring. @internal */
export interface Filling {
  readonly cache: string;
  encode(value: unknown): Uint8Array | string;
  /** What a caller gets of what was encoded. */
  decodeOwn(encoded: Uint8Array | string): unknown;
  readonly shares: boolean;
  readonly ttl: number | undefined;
  readonly softTtl: number | undefined;
  /** Begins to listen for what becomes of the write. */
  filled(): Pending;
}

/** A value with an expiry of its own. @internal */
export class Fresh {
  constructor(readonly value: unknown, readonly ttl: number | undefined, readonly softTtl: number | undefined) {}
}

/** A load of a cache's key. @internal */
export class LeaseLoad<T> extends Load<T> {
  constructor(private readonly lease: LeaseHandle, key: Key, tag: number, private readonly filling: Filling) {
    super(key, tag, filling.cache);
  }

  protected scope(): ScopeHandle | undefined {
    return native.lease_scope(this.lease);
  }
  protected detach(): number {
    return native.lease_detach(this.lease);
  }

  protected fulfil(result: unknown): T {
    const { filling, lease } = this;
    const own = result instanceof Fresh ? result : undefined;
    const value = own ? own.value : result;
    if (value === undefined) {
      this.write((tag) => native.lease_fulfil_absent(lease, own?.ttl, 0, ours(), tag));
      return undefined as T;
    }
    const { ttl, softTtl } = own?.ttl === undefined ? filling : own;
    const encoded = filling.encode(value);
    const mine = filling.shares ? value : filling.decodeOwn(encoded);
    const answer = (ref: number): number =>
      this.write((tag) => native.lease_fulfil(lease, encoded, -1, ttl, softTtl, ref, ours(), tag));
    if (filling.shares) share(value, answer);
    else answer(0);
    return mine as T;
  }

  /** The process lives until the write was answered: a value that was loaded is stored. */
  private write(fulfil: (tag: number) => number): number {
    const pending = this.filling.filled();
    try {
      return fulfil(pending.tag);
    } catch (error) {
      return pending.refused(error);
    }
  }

  protected fail(code: number, text: string, error: unknown): void {
    share(error, (ref) => native.lease_fail(this.lease, code, text, ref));
  }
  protected free(): void {
    native.free_handle(this.lease);
  }
}

/** @internal */
export function checkLoader(loader: unknown): void {
  if (typeof loader !== 'function') throw invalid('a loader is a function');
}
