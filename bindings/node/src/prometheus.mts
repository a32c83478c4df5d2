// SPDX-License-Identifier: MIT

export * from './prometheus.js';
