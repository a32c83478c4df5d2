// SPDX-License-Identifier: MIT

import { createCache } from 'async-cache-dedupe';
import pMemoize from 'p-memoize';
import { connect } from 'stanchion';

import { compare } from './measure.mjs';

const client = connect();
const group = client.group();
const soon = () => new Promise(setImmediate);
const memoized = pMemoize(soon, { cache: false });
const dedupe = createCache({ ttl: 0 }).define('soon', soon);

await compare('joining a run of one turn of the event loop', 1000, {
  'stanchion group.do': () => group.do('k', soon),
  'p-memoize': () => memoized('k'),
  'async-cache-dedupe': () => dedupe.soon('k'),
});
process.exit(0);
