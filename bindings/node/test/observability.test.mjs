// SPDX-License-Identifier: MIT

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';

import { InMemoryMetricExporter, AggregationTemporality, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Registry } from 'prom-client';

import { channels, connect } from 'stanchion';
import { observe, traceLoads } from 'stanchion/opentelemetry';
import { collect } from 'stanchion/prometheus';

test('stats count what happened', async () => {
  const client = connect();
  const cache = client.cache('c', { ttl: '5m' });
  await Promise.all([1, 2, 3].map(() => cache.getOrLoad('k', () => 1)));
  await cache.getOrLoad('k', () => 1);
  const { flights, joins, loads, hits } = client.stats();
  assert.deepEqual({ flights, joins, loads, hits }, { flights: 2, joins: 2, loads: 1, hits: 1 });
  assert.equal(cache.stats().loads, 1);
});

test('prom-client shows the counters of several clients', async () => {
  const register = new Registry();
  const [a, b] = [connect(), connect()];
  collect(a, { register, client: 'a' });
  collect(b, { register, client: 'b' });
  await a.cache('c', { ttl: '5m' }).getOrLoad('k', () => 1);
  await a.close();
  const text = await register.metrics();
  assert.match(text, /^stanchion_loads_total\{client="a"\} 1$/m);
  assert.match(text, /^stanchion_loads_total\{client="b"\} 0$/m);
  assert.equal(await register.metrics(), text);
});

test('OpenTelemetry observes the counters', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e6 });
  const provider = new MeterProvider({ readers: [reader] });
  const client = connect();
  const stop = observe(client, { meter: provider.getMeter('test'), client: 'mine' });
  await client.cache('c', { ttl: '5m' }).getOrLoad('k', () => 1);
  await reader.forceFlush();
  const all = exporter.getMetrics().flatMap((m) => m.scopeMetrics).flatMap((s) => s.metrics);
  const [point] = all.find((metric) => metric.descriptor.name === 'stanchion.loads').dataPoints;
  assert.deepEqual([point.value, point.attributes], [1, { 'stanchion.client': 'mine' }]);
  stop();
  await provider.shutdown();
});

test('a span stands for each run of a loader, and tells whether it failed', async () => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const stop = traceLoads({ tracer: provider.getTracer('test'), keys: true });
  const cache = connect().cache('c', { ttl: '5m' });
  await Promise.all([1, 2].map(() => cache.getOrLoad('k', async () => 1)));
  await cache.getOrLoad('f', () => { throw new Error('no'); }).catch(() => {});
  stop();
  await cache.getOrLoad('later', () => 1);
  const spans = exporter.getFinishedSpans();
  assert.deepEqual(spans.map((s) => [s.name, s.attributes['stanchion.cache'], s.attributes['stanchion.key'], s.status.code]),
    [['stanchion.load', 'c', 'k', 0], ['stanchion.load', 'c', 'f', 2]]);
});

test('channels tell of loads, and of what became of their writes', async () => {
  const told = [];
  const hearLoad = (message) => told.push(['load', message.cache, message.key, message.ok]);
  const hearFill = (message) => told.push(['fill', message.cache, message.key, message.status]);
  subscribe(channels.load, hearLoad);
  subscribe(channels.fill, hearFill);
  const client = connect();
  await client.cache('told', { ttl: '5m' }).getOrLoad('k', () => 1);
  await client.close();
  unsubscribe(channels.load, hearLoad);
  unsubscribe(channels.fill, hearFill);
  assert.deepEqual(told.filter(([, cache]) => cache === 'told').sort(),
    [['fill', 'told', 'k', 'ok'], ['load', 'told', 'k', true]]);
});

test('notices of a client come by the channel', async () => {
  const told = [];
  const hear = (message) => told.push(message.kind);
  subscribe(channels.notice, hear);
  const client = connect('redis://127.0.0.1:1');
  await client.ready({ wait: 2000 }).catch((error) => assert.equal(error.code, 'unavailable'));
  await client.close({ wait: 0 });
  unsubscribe(channels.notice, hear);
  assert.ok(told.includes('connection'));
});
