import { describe, expect, test } from "vitest";
import {
  keepSlowOpen,
  type SlowBody,
  slowBodiesMax,
} from "../../../src/gateway/body/growing-bodies.ts";
import { connectTo, head, startTestServer } from "../../kit/http-server.ts";

const now = 100_000;

function bodyOf(ageMs: number, bytesArrived: number, given: Partial<SlowBody> = {}) {
  const body = {
    startedMs: now - ageMs,
    bytesArrived,
    phase: "body" as const,
    isLarge: false,
    bytesChecked: 0,
    idleChecks: 0,
    isKnown: true,
    senderAddress: "",
    kept: 0,
    keepOpen: () => void body.kept++,
    ...given,
  };
  return body;
}

describe("the idle timeout", () => {
  test.each([
    ["is extended for a body that sends 1 kB per second", bodyOf(60_000, 60_000), 1],
    ["is extended for a body that has just begun", bodyOf(1_000, 1), 1],
    ["is not extended for a body that sends less than 1 kB per second", bodyOf(60_000, 55_000), 0],
    [
      "is extended for a body without data since the last check",
      bodyOf(60_000, 200_000, { bytesChecked: 200_000 }),
      1,
    ],
    [
      "is not extended for a body without data during two checks",
      bodyOf(60_000, 200_000, { bytesChecked: 200_000, idleChecks: 1 }),
      0,
    ],
    ["is not extended for a body without any data", bodyOf(1_000, 0), 0],
    ["is not extended for a large body", bodyOf(60_000, 200_000, { isLarge: true }), 0],
    ["is not extended for a complete body", bodyOf(60_000, 200_000, { phase: "answer" }), 0],
  ])("%s", (_, body, kept) => {
    keepSlowOpen([body], now);
    expect(body.kept).toBe(kept);
  });

  test("is extended for a limited number of slow bodies", () => {
    const bodies = Array.from({ length: slowBodiesMax + 10 }, () => bodyOf(10_000, 20_000));
    keepSlowOpen(bodies, now);
    expect(bodies.filter(({ kept }) => kept === 1).length).toBe(slowBodiesMax);
  });

  test("is extended for bodies with a key even if one address has many bodies", () => {
    const of = (senderAddress: string, isKnown: boolean, length: number) =>
      Array.from({ length }, () => bodyOf(10_000, 20_000, { senderAddress, isKnown }));
    const keptOf = (bodies: { kept: number }[]) => bodies.filter(({ kept }) => kept === 1).length;
    const [greedy, phone, keyless, keyed] = [
      of("a", true, 2_000),
      of("b", true, 1),
      of("c", false, 200),
      of("c", true, 100),
    ];
    keepSlowOpen([...greedy, ...keyless, ...phone, ...keyed], now);
    expect([phone, keyed, keyless].map(keptOf)).toEqual([1, 100, 28]);
    expect(keptOf(greedy)).toBe(slowBodiesMax - 129);
    // An address that is a proxy, but not configured as trusted, gets all slow bodies.
    const alone = of("a", true, slowBodiesMax);
    keepSlowOpen(alone, now);
    expect(keptOf(alone)).toBe(slowBodiesMax);
  });

  test("closes the connection of a stalled body, but not of a slow body", {
    timeout: 120_000,
  }, async () => {
    const server = await startTestServer();
    const [slow, stopped] = [await connectTo(server), await connectTo(server)];
    const dropped = await connectTo(server);
    // Takes longer than the 12 seconds after which uWS closes a connection.
    const [pieces, pieceBytes] = [14, 2_000];
    const start = head({ "Content-Length": String(pieces * pieceBytes) });
    slow.write(start);
    dropped.write(head({ "Content-Length": String(pieces * pieceBytes) }, "POST /s/"));
    stopped.write(Buffer.concat([start, Buffer.alloc(pieceBytes, "x")]));
    let sent = 0;
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        for (const wire of [slow, dropped]) wire.write(Buffer.alloc(pieceBytes, "x"));
        if (++sent < pieces) return;
        clearInterval(timer);
        resolve();
      }, 1_000);
    });
    expect((await slow.reply()).status).toBe(200);
    expect((await dropped.reply()).status).toBe(200);
    expect(server.taken[0]?.text.length).toBe(pieces * pieceBytes);
    await stopped.ended();
  });
});
