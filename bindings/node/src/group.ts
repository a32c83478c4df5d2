// SPDX-License-Identifier: MIT

import { native, type ClientHandle, type ErrorValues, type FlightHandle, type GroupHandle } from './native.js';
import { tellError } from './channels.js';
import { Candidate, checkLoader, FlightLoad, type LoadContext } from './load.js';
import { checkKey, keyText, milliseconds, type Duration, type Key } from './options.js';
import { Kind, ours, refOf, takeShared, type Answer } from './runtime.js';

/** What a call of a group may say. */
export interface GroupOptions {
  /** How long to wait for another's run. Default: for ever. */
  wait?: Duration | undefined;
  /** Ends the waiting: the call rejects with `signal.reason`. The run goes on for others who wait. */
  signal?: AbortSignal | undefined;
}

/** What came of a call of a group. */
export interface GroupResult<V> {
  /** What the run gave. */
  value: V;
  /** Others have the very same value. */
  shared: boolean;
}

/** Runs of a client's groups, and their ends. @internal */
export type Leads = Map<FlightLoad<unknown>, Promise<unknown>>;

/** One call: joined, or running its `fn`. Gives what `shape` makes of the value. */
class Join<V, R> extends Candidate<R, FlightHandle> {
  constructor(key: Key, private readonly fn: (context: LoadContext) => V | PromiseLike<V>, signal: AbortSignal | undefined,
              private readonly leads: Leads, private readonly shape: (value: V, shared: boolean) => R) {
    super(key, signal);
  }

  begin(group: GroupHandle, wait: number | undefined): Promise<R> {
    try {
      const flight = native.group_join(group, this.key, wait, this.scope, ours(), this.tag);
      if (typeof flight === 'object') {
        this.heard();
        this.settle(this.lead(flight));
      } else {
        this.op = flight;
        this.abortBy(this.signal);
      }
    } catch (error) {
      this.refused(error);
    }
    return this.answer;
  }

  override hear(kind: Kind, row: number): boolean {
    if (this.gone || kind !== Kind.value) return super.hear(kind, row);
    this.finish(this.shape(takeShared(refOf(row)) as V, true));
    return true;
  }

  protected override async lead(flight: FlightHandle): Promise<R> {
    const load = new FlightLoad<V>(flight, this.key, this.tag);
    this.load = load;
    const context: LoadContext = {
      key: this.key,
      get signal() {
        return load.signal;
      },
    };
    await undefined; // `fn` begins after the call has returned
    const work = load.run(() => this.fn(context));
    this.leads.set(load as FlightLoad<unknown>, work);
    try {
      return this.shape(await load.lead(work, this.signal, (error) => tellError(error, 'run', this.key)), load.shared);
    } finally {
      this.leads.delete(load as FlightLoad<unknown>);
    }
  }

  protected override result(answer: Answer, signal?: AbortSignal): Promise<never> {
    // The core does not tell the key of a flight.
    if (answer.kind === Kind.error && !answer.original) (answer.extra as ErrorValues)[1] ??= keyText(this.key);
    return super.result(answer, signal);
  }
}

const bare = <V>(value: V): V => value;
const withShared = <V>(value: V, shared: boolean): GroupResult<V> => ({ value, shared });

/**
 * Single-flight without a cache: callers of this process who ask for one key at one time share one run, and its very
 * result or error. Nothing is stored.
 */
export class Group {
  private readonly handle: GroupHandle;

  /** @internal */
  constructor(client: ClientHandle, private readonly leads: Leads) {
    this.handle = native.group_new(client, '{}');
  }

  /** Runs `fn`, or waits for the run of `fn` that another caller of the key began. */
  do<V>(key: Key, fn: (context: LoadContext) => V | PromiseLike<V>, options?: GroupOptions): Promise<V> {
    return this.join(key, fn, options, bare<V>);
  }

  /** The same, and whether the value is shared. */
  call<V>(key: Key, fn: (context: LoadContext) => V | PromiseLike<V>, options?: GroupOptions): Promise<GroupResult<V>> {
    return this.join(key, fn, options, withShared<V>);
  }

  private join<V, R>(key: Key, fn: (context: LoadContext) => V | PromiseLike<V>, options: GroupOptions | undefined,
                     shape: (value: V, shared: boolean) => R): Promise<R> {
    try {
      checkLoader(fn);
      checkKey(key);
      options?.signal?.throwIfAborted();
      const wait = milliseconds(options?.wait);
      return new Join(key, fn, options?.signal, this.leads, shape).begin(this.handle, wait);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Makes the next caller of the key begin a run of his own; who joined already is served as before. */
  forget(key: Key): void {
    native.group_forget(this.handle, checkKey(key));
  }
}
