// SPDX-License-Identifier: MIT
//
// The same for `import`: it re-exports the CommonJS build, so that a process has one queue and one class of each.

export * from './index.js';
