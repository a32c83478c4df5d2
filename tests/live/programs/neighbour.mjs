// SPDX-License-Identifier: MIT
// neighbour.mjs WHAT PORT KEY TTL_MS MODULES: what a program with node-redlock does; see neighbour.py. MODULES is the
// folder that its packages are in.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [what, port, key, ttl, modules] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const Redis = require("ioredis");
const { default: Redlock, Lock } = require("redlock");

const client = new Redis({ host: "127.0.0.1", port: Number(port) });
const retry = what === "hold" ? { retryCount: 500, retryDelay: 20, retryJitter: 5 } : { retryCount: 0 };
const patient = new Redlock([client], retry);
const redlock = new Redlock([client], { retryCount: 0 });
for (const one of [patient, redlock]) one.on("error", () => {});

async function outcome(act, good, bad) {
  try {
    const got = await act();
    console.log(good);
    return got;
  } catch {
    console.log(bad);
    return undefined;
  }
}

if (what === "meddle") {
  const stranger = () => new Lock(redlock, [key], "somebody else's", [], Date.now() + 60000);
  await outcome(() => stranger().release(), "done", "refused");
  await outcome(() => stranger().extend(60000), "done", "refused");
} else {
  const lock = await outcome(() => patient.acquire([key], Number(ttl)), "held", "busy");
  if (lock && what === "hold") {
    await new Promise((resolve) => createInterface({ input: process.stdin }).once("line", resolve));
  }
  if (lock) await outcome(() => redlock.release(lock), "released", "lost");
}
client.disconnect();
process.exit(0);
