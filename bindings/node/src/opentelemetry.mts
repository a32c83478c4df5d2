// SPDX-License-Identifier: MIT

export * from './opentelemetry.js';
