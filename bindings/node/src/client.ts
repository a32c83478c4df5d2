// SPDX-License-Identifier: MIT

import { channel } from 'node:diagnostics_channel';

import { native, type ClientHandle } from './native.js';
import { Cache, type CacheOptions } from './cache.js';
import { channels } from './channels.js';
import { status } from './errors.js';
import { Group, type Leads } from './group.js';
import { acquire, holding, Lock, type LockOptions } from './lock.js';
import { checkKey, milliseconds, optionsJson, type Duration, type Key } from './options.js';
import { ask, forget, Kind, listen, ours, Pending, reasonOf, settled, textOf, type Answer, type Listener } from './runtime.js';
import { tick, type TickOptions, type TickResult, type TickRun } from './tick.js';

/** Options of a client. */
export interface ClientOptions {
  /** First part of every key and channel; every program that shares caches and locks must use the same. Default "stn". */
  prefix?: string;
  /** How long one command may take. Default 250 ms; raise it for a far store. */
  commandTimeout?: Duration;
  /** How long connecting may take. Default 2 s. */
  connectTimeout?: Duration;
  /** Loads at one time while the store is down. Default 32. */
  maxLoadsDown?: number;
  /** Callers that wait for locks behind others of this client. Default 10,000. */
  maxWaiters?: number;
  /** For rediss://: a PEM file of who may sign the server's certificate. */
  tlsCaFile?: string;
  /** This client's own certificate and chain. */
  tlsCertFile?: string;
  /** The key of that. */
  tlsKeyFile?: string;
  /** Asked for and verified instead of the URL's host. */
  tlsServerName?: string;
}

/** What stands in a lock's key. */
export interface LockInspection {
  /** Taken by this library. */
  ours: boolean;
  /** As the holder's `lock.token`. */
  token?: string;
  /** As the holder's `lock.fence`. */
  fence?: number;
  /** What the holder wrote there. */
  label?: string;
  /** How long it lasts if nobody renews it; null: it does not end by itself. */
  ttlMs: number | null;
}

const ALL_NOTICES = 0x7fffffff;
const notices = channel(channels.notice);
const noticeNames: Record<number, string> = { 1: 'log', 2: 'breaker', 4: 'connection', 8: 'version', 16: 'margin' };

const noticeListener: Listener = {
  hear(kind, row) {
    if (kind === Kind.notice && notices.hasSubscribers) {
      notices.publish({ kind: noticeNames[reasonOf(row)] ?? 'log', text: textOf(row) });
    }
    return false;
  },
};

class Text extends Pending {
  protected override answered(kind: Kind, row: number): Answer {
    const answer = super.answered(kind, row);
    if (kind === Kind.value) answer.value = textOf(row);
    return answer;
  }
}

/** One store. */
export class Client implements AsyncDisposable {
  private readonly handle: ClientHandle;
  private closed: Promise<void> | undefined;
  private readonly noticeTag: number;
  private readonly leads: Leads = new Map();

  /** @internal */
  constructor(url: string, options: ClientOptions) {
    this.handle = native.client_open(url, optionsJson(options));
    this.noticeTag = listen(noticeListener);
    native.client_watch(this.handle, ALL_NOTICES, ours(), this.noticeTag);
  }

  /** Waits until the store is connected and logged in. Optional: a client connects by itself. */
  async ready(options: { wait?: Duration; signal?: AbortSignal } = {}): Promise<void> {
    const { signal } = options;
    settled(await ask((tag) => native.client_ready(this.handle, milliseconds(options.wait), ours(), tag), signal), signal);
  }

  /**
   * Closes: new work is refused at once, running loaders have until `wait` (default 5 s) to give their answer, then every
   * open operation rejects with `closed` and locks are released.
   */
  close(options: { wait?: Duration } = {}): Promise<void> {
    this.closed ??= this.end(milliseconds(options.wait));
    return this.closed;
  }

  private async end(wait: number | undefined): Promise<void> {
    const led = this.endLeads(wait ?? 5000);
    try {
      settled(await ask((tag) => native.client_close_begin(this.handle, wait, ours(), tag)));
    } finally {
      forget(this.noticeTag);
      await led;
    }
  }

  /** The core waits for leases, and not for those who run a group's flight. */
  private async endLeads(ms: number): Promise<void> {
    if (this.leads.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
      if (ms < 2 ** 31) timer = setTimeout(resolve, ms);
    });
    await Promise.race([late, Promise.all(this.leads.values())]);
    clearTimeout(timer);
    for (const load of this.leads.keys()) load.revoke(native.reasons['closed'] as number);
  }

  /** Closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Makes a group: single-flight without a cache. */
  group(): Group {
    return new Group(this.handle, this.leads);
  }

  /** Opens a cache: a name for a family of keys, and the policy for them. */
  cache<T = unknown>(name: string, options: CacheOptions<T> = {}): Cache<T> {
    return new Cache<T>(this.handle, name, options);
  }

  /** Takes a lock, or rejects with `busy` when `wait` is over. */
  async lock(name: Key, options: LockOptions): Promise<Lock> {
    const lock = await acquire(this.handle, name, options, options.wait);
    if (lock instanceof Lock) return lock;
    throw lock;
  }

  /** Takes a lock if it is free now; else null. */
  async tryLock(name: Key, options: Omit<LockOptions, 'wait'>): Promise<Lock | null> {
    const lock = await acquire(this.handle, name, options, 0);
    return lock instanceof Lock ? lock : null;
  }

  /**
   * Runs `body` with the lock and releases it. What the body throws comes through, whatever becomes of the release. If the
   * lock was lost under it, rejects with a `LockLostError`; `lock.signal` tells the body at once.
   */
  async withLock<V>(name: Key, options: LockOptions, body: (lock: Lock) => V | PromiseLike<V>): Promise<V> {
    return holding(await this.lock(name, options), body);
  }

  /** What stands in a lock's key; null: it is free. */
  async inspectLock(name: Key, options: { key?: Key; signal?: AbortSignal } = {}): Promise<LockInspection | null> {
    const { key, signal } = options;
    const answer = settled(await ask((tag) =>
      native.lock_inspect(this.handle, checkKey(name), key, undefined, ours(), tag), signal, new Text()), signal);
    if (answer.kind === Kind.absent) return null;
    const { ttl_ms: ttlMs, ...rest } = JSON.parse(answer.value as string) as { ttl_ms: number | null; ours: boolean };
    return { ...rest, ttlMs };
  }

  /** Runs `body` if this slot of time was not given out yet, to any host. A body that fails gives the slot back. */
  tick<V>(name: Key, options: TickOptions, body: (run: TickRun) => V | PromiseLike<V>): Promise<TickResult<V>> {
    return tick(this.handle, name, options, body);
  }

  /** Claims an id: true for the first claimant until `ttl` is over. For work that is announced more than once. */
  async once(id: Key, options: { ttl: Duration; signal?: AbortSignal }): Promise<boolean> {
    const ttl = milliseconds(options.ttl) ?? -1;
    const { signal } = options;
    const answer = settled(await ask((tag) =>
      native.once(this.handle, checkKey(id), ttl, undefined, ours(), tag), signal), signal);
    return answer.status === status.ok;
  }

  /** Counters since the client was opened; their names and meanings are those of `STN_STATS_MAP` in stanchion.h. */
  stats(): Record<string, number> {
    return JSON.parse(native.client_stats_json(this.handle)) as Record<string, number>;
  }

  /** Moves the clock of a `memory://...?clock=manual` store, for tests. */
  advance(duration: Duration): void {
    native.client_advance(this.handle, milliseconds(duration) ?? 0);
  }
}

/**
 * Opens a client on a store: `memory://`, `memory://name`, `redis://user:password@host:port/db`, `rediss://`, `unix://`.
 * Does not wait for a connection. Usable in worker threads, where each has clients of its own.
 */
export function connect(url = 'memory://', options: ClientOptions = {}): Client {
  return new Client(url, options);
}
