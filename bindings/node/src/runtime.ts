// SPDX-License-Identifier: MIT
//
// One queue for this environment (the main thread, a worker, a vm context), and who waits for its events.
//
// The core rings once for any number of events; a ring drains them all. Each operation has a tag; `Pending` is what
// stands behind it and hears its events, on this thread and one at a time. Nothing of the user runs here but `decode`
// functions: answers settle promises, whose continuations run in their own async context.

import { native, type Drained, type ErrorValues, type Op, type QueueHandle } from './native.js';
import { errorOf, status } from './errors.js';

/** Kinds of events, as in stanchion.h. @internal */
export const enum Kind {
  value = 1, absent, lease, refresh, flight, lock, tick, done, filled, revoked, lockLost, notice, error,
  /** Not an event: the caller's signal was aborted. */
  aborted = 100,
}

const enum Column { kind, tag, status, flags, reason, codec, area, offset, length, age, ttlLeft, load, ref, count }
const enum Area { none, text, bytes }

const table = new Float64Array(Column.count * 1024);
const drained: Drained = [undefined, undefined, undefined];
const cell = (row: number, column: Column): number => table[row * Column.count + column] as number;

/** What came of an operation. @internal */
export class Answer {
  value: unknown = undefined;
  /** A handle, or what went wrong. */
  extra: unknown = undefined;
  /** What the leader's loader threw. */
  original: { error: unknown } | undefined = undefined;

  constructor(
    readonly kind: Kind, readonly status = 0, readonly flags = 0, readonly reason = 0, readonly age = -1,
    readonly ttlLeft = -1,
  ) {}

  /** What to throw. Made where the caller waits, so that its stack tells who asked; or the leader's very error. */
  error(): unknown {
    return this.original ? this.original.error : errorOf(this.status, this.extra as ErrorValues);
  }
}

/** Somebody who waits for events of one tag. @internal */
export interface Listener {
  /** True: this tag is done with. */
  hear(kind: Kind, row: number): boolean;
}

let queue: QueueHandle | undefined;
// A tag is a place in `listeners`, and above that how often the place was used: what comes late for an earlier user
// finds nobody.
const PLACES = 2 ** 24;
const listeners: (Listener | undefined)[] = [];
const tags: number[] = [];
const freePlaces: number[] = [];

/** The queue; made at first use, so that an import alone costs nothing. @internal */
export function ours(): QueueHandle {
  if (!queue) {
    queue = native.queue_new();
    native.queue_set_doorbell(queue, drain);
  }
  return queue;
}

/** @internal */
export function listen(listener: Listener): number {
  let place = freePlaces.pop();
  if (place === undefined) {
    place = listeners.length;
    tags.push(PLACES + place);
    listeners.push(listener);
  } else {
    listeners[place] = listener;
  }
  return tags[place] as number;
}

/** @internal */
export function forget(tag: number): void {
  const place = tag & (PLACES - 1);
  if (tags[place] !== tag) return;
  tags[place] = tag + PLACES;
  listeners[place] = undefined;
  freePlaces.push(place);
}

// ---- Keeping the process alive ---------------------------------------------------------------------------------

let busy = 0;

/** Work that the process has to wait for begins (1) or ends (-1). @internal */
export function hold(change: 1 | -1): void {
  busy += change;
  if (change === 1 ? busy === 1 : busy === 0) native.queue_hold_process(ours(), busy > 0);
}

/** Runs the user's part of a call that the process waits for. @internal */
export async function held<V>(body: () => V | PromiseLike<V>): Promise<V> {
  hold(1);
  try {
    return await body();
  } finally {
    hold(-1);
  }
}

// ---- Events ----------------------------------------------------------------------------------------------------

function deliver(row: number): void {
  const tag = cell(row, Column.tag);
  const place = tag & (PLACES - 1);
  const listener = tags[place] === tag ? listeners[place] : undefined;
  if (!listener) dispose(row);
  else if (listener.hear(cell(row, Column.kind) as Kind, row)) forget(tag);
}

function drain(): void {
  for (let rows = table.length / Column.count; rows === table.length / Column.count; ) {
    drained[0] = drained[1] = drained[2] = undefined;
    rows = native.queue_drain(queue as QueueHandle, 0, table, drained);
    for (let row = 0; row < rows; ++row) {
      try {
        deliver(row);
      } catch (error) {
        setImmediate(() => { // a fault of ours must not take the other answers of the batch along
          throw error;
        });
      }
    }
  }
  textOffset = -1;
}

/** What the event carries beside numbers. @internal */
export const extraOf = (row: number): unknown => drained[2]?.[row];
/** @internal */
export const statusOf = (row: number): number => cell(row, Column.status);
/** @internal */
export const reasonOf = (row: number): number => cell(row, Column.reason);
/** @internal */
export const refOf = (row: number): number => cell(row, Column.ref);
/** @internal */
export const ttlLeftOf = (row: number): number => cell(row, Column.ttlLeft);

/** An answer without its value. @internal */
export function answerOf(kind: Kind, row: number): Answer {
  const at = row * Column.count;
  const answer = new Answer(kind, table[at + Column.status], table[at + Column.flags], table[at + Column.reason],
    table[at + Column.age], table[at + Column.ttlLeft]);
  if (drained[2]) answer.extra = drained[2][row];
  if (kind === Kind.error) {
    const ref = refOf(row);
    const error = ref === 0 ? undefined : takeShared(ref);
    if (ref !== 0 && answer.status !== status.closed) answer.original = { error };
  }
  return answer;
}

/** How a value's bytes become a value; throws if they do not. @internal */
export interface Decoder {
  decodeText(text: string): unknown;
  decodeBytes(bytes: Buffer): unknown;
}

// Callers who joined one flight have one text: it is cut out once.
let textOffset = -1;
let lastText = '';

/** The value in a row. @internal */
export function valueOf(row: number, decoder: Decoder): unknown {
  const offset = cell(row, Column.offset);
  const end = offset + cell(row, Column.length);
  if (cell(row, Column.area) !== Area.text) {
    return decoder.decodeBytes((drained[1] ?? Buffer.alloc(0)).subarray(offset, end));
  }
  if (row === 0 || offset !== textOffset) {
    textOffset = offset;
    lastText = (drained[0] as string).slice(offset, end);
  }
  return decoder.decodeText(lastText);
}

/** The text of a notice, or the JSON of an inspection. @internal */
export const textOf = (row: number): string =>
  valueOf(row, { decodeText: (text) => text, decodeBytes: (bytes) => bytes.toString() }) as string;

/** Nobody wants this event: what is in it goes back. @internal */
export function dispose(row: number): void {
  const ref = refOf(row);
  if (ref !== 0) takeShared(ref);
  const kind = cell(row, Column.kind) as Kind;
  if (kind === Kind.lease || kind === Kind.refresh || kind === Kind.flight || kind === Kind.lock || kind === Kind.tick) {
    native.free_handle(extraOf(row) as never);
  }
}

// ---- Objects shared by those who joined --------------------------------------------------------------------------

const shared = new Map<number, { value: unknown; left: number }>();
let lastRef = 0;

/**
 * Answers with an object, by `answer(ref)`, which gives how many events will carry the number. On this thread no event
 * can be read before it has returned.
 * @internal
 */
export function share(value: unknown, answer: (ref: number) => number): number {
  lastRef += 1;
  const left = answer(lastRef);
  if (left > 0) shared.set(lastRef, { value, left });
  return left;
}

/** @internal */
export function takeShared(ref: number): unknown {
  const entry = shared.get(ref);
  if (!entry) return undefined;
  entry.left -= 1;
  if (entry.left === 0) shared.delete(ref);
  return entry.value;
}

// ---- Operations with one answer ----------------------------------------------------------------------------------

let resolveMade!: (value: unknown) => void;
const keepResolve = (resolve: (value: unknown) => void): void => {
  resolveMade = resolve;
};

/** An operation that was begun; keeps the process alive until its terminal event. @internal */
export class Pending<R = Answer> implements Listener {
  readonly tag: number;
  readonly answer: Promise<R>;
  /** The core's number, for cancelling. */
  op: Op = 0;
  protected readonly settle: (result: R | Promise<R>) => void;
  protected gone = false;
  private unhook: (() => void) | undefined = undefined;

  constructor() {
    this.answer = new Promise<unknown>(keepResolve) as Promise<R>; // one function for all
    this.settle = resolveMade;
    this.tag = listen(this);
    hold(1);
  }

  /** The call was refused: no event comes. */
  refused(error: unknown): never {
    forget(this.tag);
    hold(-1);
    throw error;
  }

  /** Settles at once when the signal is aborted; what comes later is given back. */
  abortBy(signal: AbortSignal | undefined): void {
    if (!signal) return;
    const abort = (): void => {
      this.gone = true;
      native.cancel(ours(), this.op);
      this.settle(this.result(new Answer(Kind.aborted), signal));
    };
    signal.addEventListener('abort', abort, { once: true });
    this.unhook = () => signal.removeEventListener('abort', abort);
  }

  hear(kind: Kind, row: number): boolean {
    if (!this.gone) {
      this.conclude(this.answered(kind, row));
      return true;
    }
    hold(-1);
    dispose(row);
    return true;
  }

  conclude(answer: Answer): void {
    this.finish(this.result(answer));
  }

  protected finish(result: R | Promise<R>): void {
    this.heard();
    this.settle(result);
  }

  /** The operation has ended: what is to come of it is the caller's own. */
  protected heard(): void {
    hold(-1);
    this.unhook?.();
  }

  /** What the caller's promise is settled with. */
  protected result(answer: Answer, _signal?: AbortSignal): R | Promise<R> {
    return answer as R;
  }

  protected answered(kind: Kind, row: number): Answer {
    return answerOf(kind, row);
  }
}

/**
 * Begins an operation by `begin(tag)`, which gives its number if it can be cancelled, and gives what will come of it.
 * Throws if it is refused; `settled` throws what came of it.
 * @internal
 */
export function ask(begin: (tag: number) => Op | void, signal: AbortSignal | undefined = undefined,
                    pending = new Pending()): Promise<Answer> {
  try {
    signal?.throwIfAborted();
    pending.op = begin(pending.tag) ?? 0;
  } catch (error) {
    pending.refused(error);
  }
  pending.abortBy(signal);
  return pending.answer;
}

/** The answer, unless it is an error, or the signal was aborted. @internal */
export function settled(answer: Answer, signal: AbortSignal | undefined = undefined): Answer {
  if (answer.kind === Kind.error) throw answer.error();
  if (answer.kind === Kind.aborted) throw (signal as AbortSignal).reason;
  return answer;
}

/** Rejects with what the answer is, a step later: so the error's stack tells who waits. @internal */
export async function rejected(answer: Answer, signal: AbortSignal | undefined): Promise<never> {
  await undefined;
  settled(answer, signal);
  throw answer.error();
}
