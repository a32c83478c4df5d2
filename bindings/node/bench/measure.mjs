// SPDX-License-Identifier: MIT

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

/** Runs `f(i)` with so many in flight for so long; operations per second, and CPU time of each. */
async function once(inFlight, ms, f) {
  let n = 0;
  const cpu = process.cpuUsage();
  const began = performance.now();
  await Promise.all(Array.from({ length: inFlight }, async (_, worker) => {
    for (let i = worker; performance.now() < began + ms; i += inFlight, ++n) await f(i);
  }));
  const { user, system } = process.cpuUsage(cpu);
  return { rate: (n / (performance.now() - began)) * 1000, cpu: (user + system) / n };
}

/** Prints a table of candidates { name: f }, measured in turns. Gives the medians of the rates. */
export async function compare(title, inFlight, candidates, { rounds = 5, ms = 400 } = {}) {
  const all = Object.fromEntries(Object.keys(candidates).map((name) => [name, []]));
  for (const f of Object.values(candidates)) await once(inFlight, ms / 2, f);
  for (let round = 0; round < rounds; ++round) {
    for (const [name, f] of Object.entries(candidates)) all[name].push(await once(inFlight, ms, f));
  }
  const rates = Object.fromEntries(Object.entries(all).map(([name, runs]) => [name, median(runs.map((run) => run.rate))]));
  const [first] = Object.values(rates);
  console.log(`\n${title}, ${inFlight} in flight`);
  for (const [name, rate] of Object.entries(rates)) {
    const cpu = median(all[name].map((run) => run.cpu));
    console.log(`  ${name.padEnd(34)} ${Math.round(rate).toLocaleString('en').padStart(10)}/s` +
      `${cpu.toFixed(1).padStart(8)} us   ${(first / rate).toFixed(2).padStart(6)} x`);
  }
  return rates;
}
