// SPDX-License-Identifier: MIT

import { native } from './native.js';
import { invalid } from './errors.js';

/** Milliseconds as a whole number, or text: `"1500ms"`, `"5m"`, `"1h30m"`. */
export type Duration = number | string;

const parsed = new Map<string, number>();

/** A duration in ms; text is read by the core. @internal */
export function milliseconds(duration: Duration | undefined): number | undefined {
  if (typeof duration !== 'string') return duration;
  let ms = parsed.get(duration);
  if (ms === undefined) {
    ms = native.duration_parse(duration);
    if (parsed.size < 1000) parsed.set(duration, ms);
  }
  return ms;
}

const durations = new Set(['ttl', 'softTtl', 'absentTtl', 'errorTtl', 'lease', 'wait', 'maxLoad', 'maxHold', 'every',
  'offset', 'atMost', 'commandTimeout', 'connectTimeout']);

/** Options as the core reads them: its names, numbers of ms under a name that ends so. @internal */
export function optionsJson(options: object, leaveOut: readonly string[] = []): string {
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || leaveOut.includes(name)) continue;
    const theirs = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (durations.has(name) && value === Infinity) out[theirs] = 'forever';
    else if (durations.has(name) && typeof value === 'number') out[`${theirs}_ms`] = value;
    else out[theirs] = value;
  }
  return JSON.stringify(out, (name, value: unknown) => {
    if (typeof value === 'number' && !Number.isFinite(value)) throw invalid(`the option ${name} is not a number: ${value}`);
    return value;
  });
}

/** Key of a cached value, of a group's run, name of a lock or tick: text or bytes, 1 to 1,024 bytes. */
export type Key = string | Uint8Array;

interface WellFormed {
  isWellFormed(): boolean;
}

/** Two texts that differ in their lone surrogates would be one key. @internal */
export function checkKey(key: Key): Key {
  if (typeof key === 'string' ? !(key as unknown as WellFormed).isWellFormed() : !ArrayBuffer.isView(key)) {
    throw invalid('a key is a well-formed string, or bytes');
  }
  return key;
}

/** A key as errors show it. @internal */
export const keyText = (key: Key): string => (typeof key === 'string' ? key : Buffer.from(key).toString());
