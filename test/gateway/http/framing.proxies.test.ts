// Requests with ambiguous framing, sent through proxies that share connections between clients.

import { createConnection } from "node:net";
import { describe, expect, test } from "vitest";
import {
  event,
  expectUnharmed,
  key,
  request,
  startTarget,
  statusesIn,
  stored,
  type Target,
} from "../../kit/hostile.ts";
import { findProxies, proxyNames, startProxy } from "../../kit/proxies.ts";
import { framingCases } from "./framing-cases.ts";

const found = await findProxies();
const names = proxyNames.filter((name) => "path" in found[name]);
const listenMs = 400;
const victimsAtATime = 4;

for (const name of proxyNames) {
  const one = found[name];
  if ("why" in one) process.stderr.write(`NOT RUN: ${name} is not on this host: ${one.why}\n`);
}

describe("behind a proxy that shares connections", () => {
  test.each(names)(
    "each client of %s gets only its own answers",
    { timeout: 120_000 },
    async (name) => {
      const target = await startTarget("--trusted-proxies", "127.0.0.1/32");
      const port = await startProxy(name, found, target.port);
      const answersOf = new Map<string, number>();
      let victims = 0;
      for (const [title, { bytes }] of framingCases()) {
        const smuggled = `smuggled ${title}`;
        const whole = bytes(`carrier ${title}`, smuggled);
        // Also in two pieces, as a streaming proxy may forward the request.
        const later = whole.length - request(event(smuggled)).length;
        for (const pieces of [[whole], [whole.subarray(0, later), whole.subarray(later)]]) {
          const attack = hear(port, pieces);
          for (let count = 0; count < victimsAtATime; count++)
            await expectOwnAnswer(port, ++victims);
          const heard = await attack;
          answersOf.set(smuggled, (answersOf.get(smuggled) ?? 0) + heard.length);
          await expectOwnAnswer(port, ++victims);
        }
      }
      await expectNothingUnanswered(target, answersOf);
      await expectUnharmed(target);
    },
  );
});

async function expectNothingUnanswered(
  target: Target,
  answersOf: ReadonlyMap<string, number>,
): Promise<void> {
  const inStream = await stored(target);
  for (const [smuggled, answers] of answersOf) {
    const count = inStream.filter((id) => id === smuggled).length;
    expect(count, smuggled).toBeLessThanOrEqual(answers);
  }
}

async function expectOwnAnswer(port: number, number: number): Promise<void> {
  const size = (number % 50) + 2;
  const batch = Array.from({ length: size }, () => ({
    event: "e",
    distinct_id: `victim ${number}`,
  }));
  const response = await fetch(`http://127.0.0.1:${port}/batch/`, {
    method: "POST",
    body: JSON.stringify({ api_key: key, batch }),
  });
  expect([number, response.status, await response.text()]).toEqual([
    number,
    200,
    `{"status":"Ok","accepted":${size},"dropped":0}\n`,
  ]);
}

function hear(port: number, pieces: readonly Uint8Array[]): Promise<number[]> {
  return new Promise((resolve) => {
    let text = "";
    const socket = createConnection({ host: "127.0.0.1", port, noDelay: true });
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(statusesIn(text)));
    socket.write(pieces[0]!);
    if (pieces[1] !== undefined) setTimeout(() => socket.write(pieces[1]!), listenMs / 4);
    setTimeout(() => socket.destroy(), listenMs);
  });
}
