// SPDX-License-Identifier: MIT
import assert from 'node:assert/strict';
import { test } from 'node:test';

import runtime from '../dist/runtime.js';

const { forget, listen } = runtime;
const nobody = { hear: () => true };

test('a tag is never used twice, and places are', () => {
  const seen = new Set();
  let highest = 0;
  for (let round = 0; round < 1000; ++round) {
    const tags = [listen(nobody), listen(nobody), listen(nobody)];
    for (const tag of tags) {
      assert.equal(seen.has(tag), false);
      seen.add(tag);
      highest = Math.max(highest, tag % 2 ** 24);
      forget(tag);
      forget(tag); // again is nothing: its place may be another's
    }
  }
  assert.ok(highest < 10);
});

test('a tag that was forgotten twice does not take the place of who came meanwhile', () => {
  const first = listen(nobody);
  forget(first);
  const second = listen(nobody);
  forget(first);
  const third = listen(nobody);
  assert.notEqual(second % 2 ** 24, third % 2 ** 24);
  forget(second);
  forget(third);
});
