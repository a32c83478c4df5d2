// SPDX-License-Identifier: MIT
//
// A conformance script: a line cut into words. Bytes are kept as latin1 text throughout.

import { readFileSync } from 'node:fs';

export class Failed extends Error {}

const bytes = (text) => Buffer.from(text, 'latin1');

class Step {
  constructor(file, line, source, words, arrow) {
    Object.assign(this, { file, line, source, words, arrow });
  }
  stop(came) {
    throw new Failed(`FAILED ${this.file}:${this.line}: expected \`${this.source}\`, ${came}`);
  }
  bad(what, word) {
    throw new Failed(`FAILED ${this.file}:${this.line}: not a step: ${what} \`${word}\``);
  }
  need(word, what) {
    return word ?? this.bad('missing', what);
  }
  next(from, to) {
    const word = this.words.slice(from, to).find((w) => !w.used);
    if (word) word.used = true;
    return word;
  }
  operand(what) {
    return this.need(this.next(0, this.arrow), what);
  }
  optional() {
    const word = this.words.slice(0, this.arrow).find((w) => !w.used);
    if (!word || (!word.quoted && /^[a-z_]+=/.test(word.text))) return undefined;
    word.used = true;
    return word;
  }
  promise() {
    return this.next(this.arrow, this.words.length);
  }
  option(name) {
    const word = this.words.find((w) => !w.used && !w.quoted && w.text.startsWith(`${name}=`));
    if (!word) return undefined;
    word.used = true;
    return word.text.slice(name.length + 1);
  }
  flag(name) {
    const word = this.words.find((w) => !w.used && !w.quoted && w.text === name);
    if (word) word.used = true;
    return word !== undefined;
  }
  as() {
    const at = this.words.findIndex((w, i) => i + 1 < this.arrow && !w.used && !w.quoted && w.text === 'as');
    if (at < 0) return undefined;
    this.words[at].used = this.words[at + 1].used = true;
    return this.words[at + 1].text;
  }
}

function cut(line, fault) {
  const words = [];
  for (let at = 0; ; ) {
    while (line[at] === ' ') at += 1;
    if (at >= line.length || line[at] === '#') return words;
    let text = '';
    const quoted = line[at] === '"';
    if (quoted) {
      for (at += 1; line[at] !== '"'; ++at) {
        if (at >= line.length) fault('a text without its closing quote', line);
        if (line[at] !== '\\') {
          text += line[at];
          continue;
        }
        at += 1;
        const hex = /^x([0-9a-f]{2})/.exec(line.slice(at));
        if (hex) {
          text += String.fromCharCode(parseInt(hex[1], 16));
          at += 2;
        } else {
          text += { '"': '"', '\\': '\\', n: '\n' }[line[at]] ?? fault('an unknown escape', line);
        }
      }
      at += 1;
      const times = /^\*(\d+)/.exec(line.slice(at));
      if (times) {
        text = text.repeat(Number(times[1]));
        at += times[0].length;
      }
    } else if (line[at] === '{') {
      let depth = 0;
      let inText = false;
      const from = at;
      for (; ; ++at) {
        if (at >= line.length) fault('a brace that is not closed', line);
        if (inText && line[at] === '\\') at += 1;
        else if (line[at] === '"') inText = !inText;
        else if (!inText && line[at] === '{') depth += 1;
        else if (!inText && line[at] === '}' && --depth === 0) break;
      }
      at += 1;
      text = line.slice(from, at);
    } else {
      const from = at;
      while (at < line.length && line[at] !== ' ') at += 1;
      text = line.slice(from, at);
    }
    words.push({ text, bytes: bytes(text), quoted, used: false });
    if (at < line.length && line[at] !== ' ') fault('no blank after a word', line);
  }
}

/** The steps of a script, one by one. */
export function* steps(file) {
  const text = readFileSync(file, 'latin1');
  if (!text.startsWith('#')) throw new Failed(`FAILED ${file}: a script begins with a comment that names its promise`);
  for (const [i, line] of text.split('\n').entries()) {
    const step = new Step(file, i + 1, line, [], 0);
    step.words = cut(line, (what, word) => step.bad(what, word));
    if (step.words.length === 0) continue;
    const arrow = step.words.findIndex((w) => !w.quoted && w.text === '->');
    step.arrow = arrow < 0 ? step.words.length : arrow + 1;
    if (arrow >= 0) step.words[arrow].used = true;
    yield step;
  }
}

/** Runs a script; prints a line and exits with 1 if a promise is broken. */
export async function runScript(file) {
  const { World } = await import('./world.mjs');
  try {
    const world = new World();
    let last;
    for (const step of steps(file)) {
      last = step;
      world.run(step);
    }
    world.end(last);
  } catch (error) {
    console.log(error instanceof Failed ? error.message : `FAILED ${file}: ${error.stack}`);
    process.exit(1);
  }
}
