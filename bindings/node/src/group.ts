// SPDX-License-Identifier: MIT

import { native, type ClientHandle, type ErrorValues, type FlightHandle, type GroupHandle } from './native.js';
import { tellError } from './channels.js';
import { checkLoader, FlightLoad, within, type LoadContext } from './load.js';
import { checkKey, keyText, milliseconds, type Duration, type Key } from './options.js';
import { Answer, Kind, ours, Pending, reasonOf, refOf, settled, takeShared } from './runtime.js';

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

class Join extends Pending {
  load: FlightLoad<unknown> | undefined;

  override hear(kind: Kind, row: number): boolean {
    if (kind === Kind.revoked) {
      this.load?.revoke(reasonOf(row));
      return false;
    }
    super.hear(kind, row);
    return kind !== Kind.flight || this.gone;
  }

  protected override answered(kind: Kind, row: number): ReturnType<Pending['answered']> {
    const answer = super.answered(kind, row);
    if (kind === Kind.value) answer.value = takeShared(refOf(row));
    return answer;
  }
}

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
  async do<V>(key: Key, fn: (context: LoadContext) => V | PromiseLike<V>, options: GroupOptions = {}): Promise<V> {
    return (await this.call(key, fn, options)).value;
  }

  /** The same, and whether the value is shared. */
  async call<V>(key: Key, fn: (context: LoadContext) => V | PromiseLike<V>,
                options: GroupOptions = {}): Promise<GroupResult<V>> {
    const { signal } = options;
    checkLoader(fn);
    checkKey(key);
    signal?.throwIfAborted();
    const join = new Join();
    try {
      const lead = native.group_join(this.handle, key, milliseconds(options.wait), within(), ours(), join.tag);
      if (typeof lead === 'object') {
        const leads = new Answer(Kind.flight);
        leads.extra = lead;
        join.conclude(leads);
      } else {
        join.op = lead;
        join.abortBy(signal);
      }
    } catch (error) {
      join.refused(error);
    }
    const answer = await join.answer;
    switch (answer.kind) {
      case Kind.value:
        return { value: answer.value as V, shared: true };
      case Kind.flight: {
        const load = new FlightLoad<V>(answer.extra as FlightHandle, key, join.tag);
        join.load = load;
        const context: LoadContext = {
          key,
          get signal() {
            return load.signal;
          },
        };
        const work = load.run(() => fn(context));
        this.leads.set(load as FlightLoad<unknown>, work);
        try {
          const value = await load.lead(work, signal, (error) => tellError(error, 'run', key));
          return { value, shared: load.shared };
        } finally {
          this.leads.delete(load as FlightLoad<unknown>);
        }
      }
      default:
        // The core does not tell the key of a flight.
        if (answer.kind === Kind.error && !answer.original) (answer.extra as ErrorValues)[1] ??= keyText(key);
        settled(answer, signal);
        throw answer.error();
    }
  }

  /** Makes the next caller of the key begin a run of his own; who joined already is served as before. */
  forget(key: Key): void {
    native.group_forget(this.handle, checkKey(key));
  }
}
