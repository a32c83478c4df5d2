// SPDX-License-Identifier: MIT

import { invalid } from './errors.js';

/** A pair of functions that turn values into bytes and back. What `decode` throws on is a miss that gets overwritten. */
export interface CodecPair<T> {
  /** The bytes, or text to be stored as UTF-8. */
  encode(value: T): Uint8Array | string;
  /** The value. The bytes are yours. */
  decode(bytes: Buffer): T;
}

/**
 * How values are stored. `json` (the default): strict JSON, shared with every language. `buffer`: bytes in, `Buffer`
 * out. `string`: text as UTF-8.
 */
export type Codec<T> = 'json' | 'buffer' | 'string' | CodecPair<T>;

/** @internal */
export interface Coding {
  /** Its name for the core. */
  readonly core: 'json' | 'raw' | 'private';
  encode(value: unknown): Uint8Array | string;
  decodeText(text: string): unknown;
  decodeBytes(bytes: Buffer): unknown;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const loneSurrogate = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f]/;

function refuseNumber(this: unknown, name: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) throw invalid(`${value} at "${name}" cannot be written as JSON`);
  return value;
}

const json: Coding = {
  core: 'json',
  encode(value) {
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined) throw invalid(`a ${typeof value} cannot be written as JSON`);
    // JSON.stringify writes null for NaN and Infinity; other languages would read that as a value.
    if (text.includes('null')) JSON.stringify(value, refuseNumber);
    if (loneSurrogate.test(text)) throw invalid('a text with a lone surrogate cannot be written as JSON');
    return text;
  },
  decodeText: (text) => JSON.parse(text) as unknown,
  decodeBytes: (bytes) => JSON.parse(utf8.decode(bytes)) as unknown,
};

const buffer: Coding = {
  core: 'raw',
  encode(value) {
    if (!ArrayBuffer.isView(value)) throw invalid('the codec "buffer" takes a Uint8Array');
    return value as Uint8Array; // of whatever realm
  },
  decodeText: (text) => Buffer.from(text, 'latin1'),
  decodeBytes: (bytes) => Buffer.from(bytes),
};

const string: Coding = {
  core: 'raw',
  encode(value) {
    if (typeof value !== 'string') throw invalid('the codec "string" takes a string');
    if (!(value as unknown as { isWellFormed(): boolean }).isWellFormed()) throw invalid('a text has a lone surrogate');
    return value;
  },
  decodeText: (text) => text,
  decodeBytes: (bytes) => utf8.decode(bytes),
};

/** @internal */
export function codingOf<T>(codec: Codec<T> | undefined): Coding {
  switch (codec) {
    case undefined:
    case 'json':
      return json;
    case 'buffer':
      return buffer;
    case 'string':
      return string;
    default:
      if (typeof codec !== 'object' || typeof codec.encode !== 'function' || typeof codec.decode !== 'function') {
        throw invalid('codec is "json", "buffer", "string" or { encode, decode }');
      }
      return {
        core: 'private',
        encode: (value) => codec.encode(value as T),
        decodeText: (text) => codec.decode(Buffer.from(text, 'latin1')),
        decodeBytes: (bytes) => codec.decode(Buffer.from(bytes)),
      };
  }
}

/** What a caller gets of a value that was just encoded. @internal */
export function decodeOwn(coding: Coding, encoded: Uint8Array | string): unknown {
  if (typeof encoded === 'string') {
    return coding === json || coding === string ? coding.decodeText(encoded) : coding.decodeBytes(Buffer.from(encoded));
  }
  return coding.decodeBytes(Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength));
}
