// SPDX-License-Identifier: MIT

import { channel } from 'node:diagnostics_channel';

import { native, type CacheHandle, type ClientHandle, type EventHandle, type LeaseHandle } from './native.js';
import { invalid, reasonName, StanchionError, status } from './errors.js';
import { codingOf, decodeOwn, type Codec, type Coding } from './codec.js';
import { channels, tellError } from './channels.js';
import { Candidate, checkLoader, Fresh, LeaseLoad, type Filling, type LoadContext } from './load.js';
import { checkKey, keyText, milliseconds, optionsJson, type Duration, type Key } from './options.js';
import { Answer, answerOf, ask, extraOf, forget, Kind, ours, Pending, refOf, rejected, settled, statusOf,
  takeShared, ttlLeftOf, valueOf } from './runtime.js';

/** Policy of a cache. */
export interface CacheOptions<T = unknown> {
  /** Hard expiry; without it the cache can get and invalidate only. */
  ttl?: Duration;
  /** From here on values are answered at once and refreshed in the background, by one process of the fleet. */
  softTtl?: Duration;
  /** How long "there is no such thing" is cached. Default 30 s. */
  absentTtl?: Duration;
  /** How long a failed load is not tried again by the fleet. Default 1 s. */
  errorTtl?: Duration;
  /** Adds U(0, ttl x jitter) to both expiries. Default 0.1. */
  jitter?: number;
  /** Eagerness to refresh before `softTtl`; 0 = off. Default 1. */
  early?: number;
  /** Length of a lease; renewed while the load runs. Default "auto". */
  lease?: Duration;
  /** How long a caller waits for somebody else's load. Default max(10 s, 2 x the usual load). */
  wait?: Duration;
  /** A load older than this is given up on. Default 60 s. */
  maxLoad?: Duration;
  /** Loads of this cache at one time in this client. */
  maxLoads?: number;
  /** Bytes; a larger value is returned but not stored. Default 8 MiB. */
  maxValue?: number;
  /** Callers of this process join one load. Default true. */
  coalesce?: boolean;
  /** One load for the whole fleet. Default true. */
  fleet?: boolean;
  /** 2 makes the cache "name@2": raise it when the values' model changes. */
  version?: number;
  /** How values are stored. Default "json". */
  codec?: Codec<T>;
  /** Callers who joined a load get the leader's very object. Default false: each has a value of his own. */
  share?: boolean;
}

/** What one call of `getOrLoad` may say. */
export interface LoadOptions<V> {
  /** Hard expiry of what this call loads. */
  ttl?: Duration | undefined;
  /** Soft expiry of what this call loads. */
  softTtl?: Duration | undefined;
  /** How long to wait for somebody else's load; 0 = not at all, `Infinity` = for ever. */
  wait?: Duration | undefined;
  /** Ends the waiting: the call rejects with `signal.reason`. The load goes on for others who wait. */
  signal?: AbortSignal | undefined;
  /** Answered in place of an error of the load or the waiting; called if it is a function. */
  fallback?: V | (() => V | Promise<V>) | undefined;
  /** Load even if a fresh value is there. */
  force?: boolean | undefined;
  /** Load for this caller alone: no joining, no lease, no write. */
  noStore?: boolean | undefined;
  /** As the cache's option, for this call. */
  share?: boolean | undefined;
}

/** What a cache's loader is told. */
export interface CacheLoadContext extends LoadContext {
  /** `return fresh(value, { ttl })`: the value with an expiry of its own. */
  fresh<V>(value: V, expiry: { ttl: Duration; softTtl?: Duration }): V;
}

/** Reads the source. `undefined` = there is no such thing, which is cached too; `null`, `0`, `''`, `false` are values. */
export type Loader<V> = (context: CacheLoadContext) => V | PromiseLike<V>;

/** What is cached under a key. */
export interface Lookup<V> {
  /** Something is cached: a value, or absence. */
  hit: boolean;
  /** What is cached is that there is no such thing. */
  absent: boolean;
  /** The value; undefined if there is none. */
  value: V | undefined;
  /** It is past its soft expiry, or marked stale. */
  stale: boolean;
  /** ms since it was loaded, by the store's clock. */
  age: number | undefined;
  /** Where the answer came from. */
  source: 'store' | 'flight' | 'near' | 'memory' | undefined;
}

/** What `set` may say. */
export interface SetOptions {
  /** Hard expiry of this value. */
  ttl?: Duration | undefined;
  /** Soft expiry of this value. */
  softTtl?: Duration | undefined;
  /** Ends the waiting; what was sent may still be applied. */
  signal?: AbortSignal | undefined;
}

/** What `invalidate` may say. */
export interface InvalidateOptions {
  /** Keep the value, as stale: readers get it while one caller refreshes. */
  stale?: boolean | undefined;
  /** How long to try. Default 10 s. */
  wait?: Duration | undefined;
  /** Ends the waiting; what was sent may still be applied. */
  signal?: AbortSignal | undefined;
}

/** What `wrap` needs to know. */
export interface WrapOptions<A extends unknown[], V> extends Omit<LoadOptions<V>, 'signal' | 'force'> {
  /** The key of a call, from its arguments. */
  key: (...args: A) => Key;
}

/** A function whose results are cached. */
export interface Wrapped<A extends unknown[], V> {
  (...args: A): Promise<V>;
  /** Invalidates the result for these arguments. */
  invalidate(...args: A): Promise<void>;
  /** Runs the function for these arguments even if a fresh result is cached. */
  refresh(...args: A): Promise<V>;
}

const enum Flag { force = 1, noStore = 2, refresh = 4 }
const STALE = 1;
const sources = [undefined, 'store', 'flight', 'near', 'memory'] as const;
const fills = channel(channels.fill);

// Fetches that were answered and may yet be asked to refresh, oldest first. The core does not tell which will be.
const refreshable = new Set<number>();
const MAX_REFRESHABLE = 4096;

class Filled extends Pending {
  constructor(private readonly cache: string, private readonly key: Key) {
    super();
  }
  override hear(kind: Kind, row: number): boolean {
    if (fills.hasSubscribers) {
      const name = Object.keys(status).find((s) => native.statuses[s] === statusOf(row));
      fills.publish({ cache: this.cache, key: this.key, status: name });
    }
    return super.hear(kind, row);
  }
}

/** What a cache hands to its fetches and loads. */
interface Core {
  readonly name: string;
  readonly handle: CacheHandle;
  readonly coding: Coding;
}

/** One call of getOrLoad: its answer, then perhaps a load, or a refresh in the background. */
class Fetch extends Candidate<unknown, LeaseHandle> implements Filling {
  readonly cache: string;

  constructor(private readonly core: Core, key: Key, private readonly loader: Loader<unknown>,
              readonly ttl: number | undefined, readonly softTtl: number | undefined,
              private readonly wait: number | undefined, signal: AbortSignal | undefined, readonly shares: boolean) {
    super(key, signal);
    this.cache = core.name;
  }

  begin(flags: number): Promise<unknown> {
    try {
      this.op = native.cache_fetch(this.core.handle, undefined, this.key, this.wait, flags, this.scope, ours(), this.tag);
    } catch (error) {
      this.refused(error);
    }
    this.abortBy(this.signal);
    return this.answer;
  }

  override hear(kind: Kind, row: number): boolean {
    switch (kind) {
      case Kind.value:
        if (this.gone) return super.hear(kind, row);
        return this.decode(row) && this.mayRefresh(row);
      case Kind.absent:
        if (this.gone) return super.hear(kind, row);
        this.finish(undefined);
        return this.mayRefresh(row);
      case Kind.refresh: {
        const lease = extraOf(row) as LeaseHandle;
        refreshable.delete(this.tag);
        setImmediate(() => this.context.runInAsyncScope(this.refresh, this, lease)); // after the caller has his answer
        return false;
      }
      default:
        return super.hear(kind, row);
    }
  }

  /** False: the value could not be decoded, and the key is fetched again as if it were not there. */
  private decode(row: number): boolean {
    const ref = refOf(row);
    let value: unknown;
    try {
      const object = ref === 0 ? undefined : takeShared(ref);
      value = ref !== 0 && this.shares ? object : valueOf(row, this.core.coding);
    } catch {
      try {
        const event = native.queue_keep(ours(), row) as EventHandle;
        this.op = native.cache_refetch(this.core.handle, undefined, event, this.wait, this.scope, ours(), this.tag);
        native.free_handle(event);
        return false;
      } catch (error) {
        const failed = new Answer(Kind.error, status.undecodable);
        failed.original = { error };
        this.conclude(failed);
        return true;
      }
    }
    this.finish(value);
    return true;
  }

  /** Whether the tag is done with: a REFRESH may follow only what has a soft expiry. */
  private mayRefresh(row: number): boolean {
    if (ttlLeftOf(row) < 0) return true;
    refreshable.add(this.tag);
    if (refreshable.size > MAX_REFRESHABLE) {
      const [oldest] = refreshable;
      refreshable.delete(oldest as number);
      forget(oldest as number);
    }
    return false;
  }

  protected override lead(lease: LeaseHandle): Promise<unknown> {
    const { load, work } = this.start(lease);
    return load.lead(work, this.signal, (error) => tellError(error, 'load', this.key));
  }

  private async refresh(lease: LeaseHandle): Promise<void> {
    const outcome = await this.start(lease).work;
    if (!outcome.ok) tellError(outcome.error, 'refresh', this.key);
  }

  /** Runs the loader. */
  private start(lease: LeaseHandle): { load: LeaseLoad<unknown>; work: ReturnType<LeaseLoad<unknown>['run']> } {
    const load = new LeaseLoad(lease, this.key, this.tag, this);
    this.load = load;
    const context: CacheLoadContext = {
      key: this.key,
      get signal() {
        return load.signal;
      },
      fresh: (value, { ttl, softTtl }) => new Fresh(value, milliseconds(ttl), milliseconds(softTtl)) as never,
    };
    return { load, work: load.run(() => this.loader(context)) };
  }

  encode(value: unknown): Uint8Array | string {
    return this.core.coding.encode(value);
  }
  decodeOwn(encoded: Uint8Array | string): unknown {
    return decodeOwn(this.core.coding, encoded);
  }
  filled(): Pending {
    return new Filled(this.core.name, this.key);
  }
}

/** A look at what is cached: what cannot be decoded is an error. */
abstract class Look<R> extends Pending<R> {
  constructor(private readonly coding: Coding, private readonly key: Key) {
    super();
  }

  /** Of a value that was decoded, or of absence. */
  protected abstract found(kind: Kind, row: number, value: unknown): R;

  override hear(kind: Kind, row: number): boolean {
    if (this.gone || (kind !== Kind.value && kind !== Kind.absent)) return super.hear(kind, row);
    let value: unknown;
    try {
      if (kind === Kind.value) value = valueOf(row, this.coding);
    } catch (error) {
      const failed = new Answer(Kind.error, status.undecodable);
      failed.extra = [`the stored value cannot be decoded: ${(error as Error).message}`, keyText(this.key), undefined, 0];
      this.conclude(failed);
      return true;
    }
    this.finish(this.found(kind, row, value));
    return true;
  }

  protected override result(answer: Answer, signal?: AbortSignal): Promise<R> {
    return rejected(answer, signal);
  }

  begin(cache: CacheHandle, signal: AbortSignal | undefined): Promise<R> {
    try {
      checkKey(this.key);
      signal?.throwIfAborted();
      this.op = native.cache_get(cache, this.key, undefined, ours(), this.tag);
    } catch (error) {
      this.refused(error);
    }
    this.abortBy(signal);
    return this.answer;
  }
}

class Get extends Look<unknown> {
  protected override found(_kind: Kind, _row: number, value: unknown): unknown {
    return value;
  }
}

class LookUp extends Look<Lookup<unknown>> {
  protected override found(kind: Kind, row: number, value: unknown): Lookup<unknown> {
    const { reason, flags, age } = answerOf(kind, row);
    const absent = kind === Kind.absent && reasonName(reason) !== 'miss';
    return {
      hit: kind === Kind.value || absent,
      absent,
      value,
      stale: (flags & STALE) !== 0,
      age: age < 0 ? undefined : age,
      source: sources[(flags & 0xf0) >> 4],
    };
  }
}

const passedOn = new Set(['invalid_argument', 'unknown_option', 'too_large', 'would_deadlock', 'closed', 'forked']);

/**
 * A name for a family of keys, and the policy for them. One load for all who ask for a key at one time, in this process
 * and in the fleet.
 */
export class Cache<T = unknown> {
  /** Its name. */
  readonly name: string;
  private readonly handle: CacheHandle;
  private readonly coding: Coding;
  private readonly shares: boolean;
  private readonly core: Core;

  /** @internal */
  constructor(private readonly client: ClientHandle, name: string, options: CacheOptions<T>) {
    this.name = name;
    this.coding = codingOf(options.codec);
    this.shares = options.share ?? false;
    const policy = { ...options, codec: this.coding.core };
    this.handle = native.cache_open(client, name, optionsJson(policy, ['share']));
    this.core = { name, handle: this.handle, coding: this.coding };
  }

  /**
   * The value of a key, loaded if need be: by one caller of the fleet, while all others wait for his result. Errors of a
   * loader reach everybody who joined in this process as they are.
   */
  getOrLoad<V extends T | undefined = T>(key: Key, loader: Loader<V>, options: LoadOptions<V> = {}): Promise<V> {
    return options.fallback === undefined ? this.fetch(key, loader, options) : this.fetchOrElse(key, loader, options);
  }

  private async fetchOrElse<V extends T | undefined>(key: Key, loader: Loader<V>, options: LoadOptions<V>): Promise<V> {
    try {
      return await this.fetch(key, loader, options);
    } catch (error) {
      const { fallback, signal } = options;
      if (signal?.aborted && error === signal.reason) throw error;
      if (error instanceof StanchionError && passedOn.has(error.code)) throw error;
      return typeof fallback === 'function' ? await (fallback as () => V | Promise<V>)() : (fallback as V);
    }
  }

  private fetch<V extends T | undefined>(key: Key, loader: Loader<V>, options: LoadOptions<V>): Promise<V> {
    try {
      checkLoader(loader);
      checkKey(key);
      const { signal } = options;
      signal?.throwIfAborted();
      const fetch = new Fetch(this.core, key, loader, milliseconds(options.ttl), milliseconds(options.softTtl),
        milliseconds(options.wait), signal, options.share ?? this.shares);
      return fetch.begin((options.force ? Flag.force : 0) | (options.noStore ? Flag.noStore : 0) | Flag.refresh) as Promise<V>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** What is cached; `undefined` = nothing, or absence. Never loads. */
  get<V extends T = T>(key: Key, options?: { signal?: AbortSignal }): Promise<V | undefined> {
    return this.look(new Get(this.coding, key), options) as Promise<V | undefined>;
  }

  /** What is cached, and what is known of it. Never loads. */
  lookup<V extends T = T>(key: Key, options?: { signal?: AbortSignal }): Promise<Lookup<V>> {
    return this.look(new LookUp(this.coding, key), options) as Promise<Lookup<V>>;
  }

  private look<R>(what: Look<R>, options: { signal?: AbortSignal } | undefined): Promise<R> {
    try {
      return what.begin(this.handle, options?.signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Writes a value; the last writer wins. After a change of the source prefer `invalidate`. */
  async set(key: Key, value: T, options: SetOptions = {}): Promise<void> {
    checkKey(key);
    if (value === undefined) throw invalid('undefined is no value: use invalidate', keyText(key));
    const encoded = this.coding.encode(value);
    settled(await ask((tag) => native.cache_put(this.handle, undefined, key, encoded, -1, milliseconds(options.ttl),
      milliseconds(options.softTtl), undefined, ours(), tag), options.signal), options.signal);
  }

  /** Deletes the key's value, or marks it stale. A load that is running anywhere cannot store what it read before. */
  async invalidate(key: Key, options: InvalidateOptions = {}): Promise<void> {
    checkKey(key);
    settled(await ask((tag) => native.cache_invalidate(this.handle, key, options.stale ? STALE : 0,
      milliseconds(options.wait), ours(), tag), options.signal), options.signal);
  }

  /** A function whose results are cached under the keys that `options.key` makes of its arguments. */
  wrap<A extends unknown[], V extends T | undefined>(fn: (...args: A) => V | PromiseLike<V>,
                                                     options: WrapOptions<A, V>): Wrapped<A, V> {
    const { key, ...rest } = options;
    const run = (args: A, force: boolean): Promise<V> =>
      this.getOrLoad<V>(key(...args), () => fn(...args), force ? { ...rest, force } : rest);
    return Object.assign(async (...args: A) => run(args, false), {
      invalidate: async (...args: A) => this.invalidate(key(...args)),
      refresh: async (...args: A) => run(args, true),
    });
  }

  /** The counters of this cache in this client. */
  stats(): Record<string, number> {
    return JSON.parse(native.client_stats_json(this.client, this.handle)) as Record<string, number>;
  }
}
