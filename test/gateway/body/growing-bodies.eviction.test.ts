import { describe, expect, test } from "vitest";
import { GrowingBodies, type GrowingBody } from "../../../src/gateway/body/growing-bodies.ts";
import type { Peek } from "../../../src/gateway/http/port.ts";
import {
  codeIn,
  connectTo,
  head,
  inflightBytesMax,
  startTestServer,
  until,
  type Wire,
} from "../../kit/http-server.ts";

const declared = 900_000;
const part = 300_000;

async function begin(wire: Wire): Promise<void> {
  wire.write(
    Buffer.concat([head({ "Content-Length": String(declared) }), Buffer.alloc(part, "x")]),
  );
}

describe("the memory budget for bodies", () => {
  test("evicts the newest body if the oldest needs memory", async () => {
    const server = await startTestServer({ bodyBytesMax: declared });
    const wires = [
      await connectTo(server),
      await connectTo(server),
      await connectTo(server),
    ] as const;
    const [first, second, last] = wires;
    for (const [place, wire] of wires.entries()) {
      await begin(wire);
      await until(() => server.admission.bytes === (place + 1) * part, "a part of it is in hand");
    }
    const taken = inflightBytesMax - 3 * part;
    server.admission.take(taken);
    first.write(Buffer.alloc(part, "x"));
    await until(() => server.admission.bytes <= inflightBytesMax, "the first has room");
    first.write(Buffer.alloc(part, "x"));
    expect((await first.reply()).status).toBe(200);
    second.write(Buffer.alloc(2 * part, "x"));
    last.write(Buffer.alloc(2 * part, "x"));
    expect(codeIn(await last.reply())).toBe("overloaded");
    await second.reply();
    server.admission.release(taken);
  });

  test("does not evict earlier bodies for a large body", async () => {
    const server = await startTestServer({ bodyBytesMax: declared });
    const [first, second, small] = [
      await connectTo(server),
      await connectTo(server),
      await connectTo(server),
    ];
    await begin(first);
    await until(() => server.admission.bytes === part, "a part of it is in hand");
    server.admission.take(inflightBytesMax - part);
    second.write(
      Buffer.concat([head({ "Content-Length": String(declared) }), Buffer.alloc(declared, "x")]),
    );
    expect(codeIn(await second.reply())).toBe("overloaded");
    small.write(
      Buffer.concat([head({ "Content-Length": "200000" }), Buffer.alloc(200_000, "x")]).subarray(
        0,
        -1,
      ),
    );
    await until(() => server.admission.bytes > inflightBytesMax, "it is in hand");
    small.write("x");
    expect((await small.reply()).status).toBe(200);
    server.admission.release(inflightBytesMax - part);
    first.write(Buffer.alloc(declared - part, "x"));
    expect((await first.reply()).status).toBe(200);
  });

  test("rejects a body if evicting all others would not free enough", async () => {
    const server = await startTestServer({ bodyBytesMax: declared });
    const wires: Wire[] = [];
    for (const bytes of [100_000, 20_000, 20_000, 20_000]) {
      const before = server.admission.bytes;
      const wire = await connectTo(server);
      wire.write(
        Buffer.concat([head({ "Content-Length": String(declared) }), Buffer.alloc(bytes, "x")]),
      );
      await until(() => server.admission.bytes === before + bytes, "a part of it is in hand");
      wires.push(wire);
    }
    const [first, ...later] = wires;
    const taken = inflightBytesMax - server.admission.bytes;
    server.admission.take(taken);
    first!.write(Buffer.alloc(part, "x"));
    await until(() => server.admission.bytes === taken + 60_000, "the first is lost, and only it");
    server.admission.release(taken);
    for (const wire of later) wire.write(Buffer.alloc(declared - 20_000, "x"));
    for (const wire of later) expect((await wire.reply()).status).toBe(200);
    first!.write(Buffer.alloc(declared - 100_000 - part, "x"));
    expect(codeIn(await first!.reply())).toBe("overloaded");
  });

  const now = 100_000;
  const arriving = (ageMs: number, bytesArrived: number): GrowingBody => ({
    startedMs: now - ageMs,
    bytesArrived,
    bytesHeld: 10,
    phase: "body",
    isLarge: true,
    isKnown: true,
    senderAddress: "",
  });

  test("evicts slow bodies first, starting with the newest", () => {
    const slow = arriving(30_000, 1_000_000);
    const alsoSlow = arriving(10_000, 1_000_000);
    const fast = arriving(10_000, 20_000_000);
    const young = arriving(4_000, 1_000);
    const bodies = new GrowingBodies<GrowingBody>();
    for (const body of [fast, slow, alsoSlow, young]) bodies.add(body);
    expect(bodies.evictedFor(young, 1, now)).toEqual([alsoSlow]);
    expect(bodies.evictedFor(fast, 10, now)).toEqual([alsoSlow]);
    expect(bodies.evictedFor(fast, 30, now)).toEqual([alsoSlow, slow, young]);
    expect(bodies.evictedFor(young, 20, now)).toEqual([alsoSlow, slow]);
    expect(bodies.evictedFor(young, 21, now)).toEqual([]);
    bodies.delete(alsoSlow);
    expect(bodies.evictedFor(young, 1, now)).toEqual([slow]);
    expect(bodies.evictedFor(slow, 1, now)).toEqual([young]);
    bodies.delete(slow);
    expect([bodies.evictedFor(young, 1, now), bodies.evictedFor(fast, 1, now)]).toEqual([
      [],
      [young],
    ]);
  });

  test("never treats a complete body as slow", () => {
    const waiting: GrowingBody = { ...arriving(30_000, 1_000), phase: "answer" };
    const fresh = arriving(0, 1_000_000);
    const bodies = new GrowingBodies<GrowingBody>();
    bodies.add(waiting);
    bodies.add(fresh);
    expect(bodies.evictedFor(fresh, 1, now)).toEqual([]);
  });

  test("does not evict a body that holds no memory", () => {
    const [first, empty, last] = [
      arriving(0, 1),
      { ...arriving(0, 1), bytesHeld: 0 },
      arriving(0, 1),
    ];
    const bodies = new GrowingBodies<GrowingBody>();
    for (const body of [first, empty, last]) bodies.add(body);
    expect(bodies.evictedFor(first, 10, now)).toEqual([last]);
    expect(bodies.evictedFor(first, 11, now)).toEqual([]);
  });

  test("evicts a small body that is slow for more than a second", () => {
    const small = { ...arriving(3_000, 262_000), isLarge: false };
    const fresh = { ...arriving(900, 100), isLarge: false };
    const first = arriving(0, 1);
    const bodies = new GrowingBodies<GrowingBody>();
    for (const body of [first, small, fresh]) bodies.add(body);
    expect(bodies.evictedFor(first, 10, now)).toEqual([small]);
    expect(bodies.evictedFor(first, 11, now)).toEqual([]);
  });

  test("evicts bodies without a known key for a body with a key", () => {
    const of = (senderAddress: string, bytesHeld: number): GrowingBody => ({
      ...arriving(0, 1),
      isKnown: false,
      senderAddress,
      bytesHeld,
    });
    const [greedy, modest, alsoGreedy] = [of("a", 60), of("b", 100), of("a", 60)];
    const known = arriving(0, 1);
    const bodies = new GrowingBodies<GrowingBody>();
    for (const body of [greedy, modest, alsoGreedy, known]) bodies.add(body);
    expect(bodies.evictedFor(known, 100, now)).toEqual([alsoGreedy, greedy]);
    expect(bodies.evictedFor(known, 200, now)).toEqual([alsoGreedy, greedy, modest]);
    expect(bodies.evictedFor(greedy, 130, now)).toEqual([alsoGreedy, modest]);
    expect(bodies.evictedFor(greedy, 161, now)).toEqual([]);
  });

  test("limits each client address even if addresses are not recorded", async () => {
    const peek: Peek = (body) => ({
      projectId: body[0] === 0x6b ? "k" : undefined,
      lane: undefined,
    });
    const server = await startTestServer({ inflightBytesMax: 800_000, recordIp: false, peek });
    const froms = [...Array.from({ length: 8 }, () => "127.0.0.2"), "127.0.0.3"];
    const wires: Wire[] = [];
    for (const [place, from] of froms.entries()) {
      const wire = await connectTo(server, "127.0.0.1", from);
      wire.write(Buffer.concat([head({ "Content-Length": "100000" }), Buffer.alloc(99_999, "x")]));
      await until(() => server.admission.bytes === (place + 1) * 99_999, "it is in hand");
      wires.push(wire);
    }
    const known = await connectTo(server);
    known.write(Buffer.concat([head({ "Content-Length": "50000" }), Buffer.alloc(50_000, "k")]));
    expect((await known.reply()).status).toBe(200);
    for (const wire of wires) wire.write("x");
    const statuses = await Promise.all(wires.map(async (wire) => (await wire.reply()).status));
    expect(statuses.filter((status) => status === 503).length).toBe(1);
    expect(statuses.at(-1)).toBe(200);
    expect(new Set(server.taken.map(({ exchange }) => exchange.clientAddress))).toEqual(
      new Set([""]),
    );
  });

  test("evicts several bodies together for a body that arrives in small pieces", async () => {
    const peek: Peek = (body) => ({
      projectId: body[0] === 0x6b ? "k" : undefined,
      lane: undefined,
    });
    const server = await startTestServer({ peek });
    const wires: Wire[] = [];
    for (let n = 1; n <= 4; n++) {
      const wire = await connectTo(server);
      wire.write(Buffer.concat([head({ "Content-Length": "3001" }), Buffer.alloc(3_000, "x")]));
      await until(() => server.admission.bytes === n * 3_000, "it is in hand");
      wires.push(wire);
    }
    const taken = inflightBytesMax * (9 / 8) - server.admission.bytes;
    server.admission.take(taken);
    const known = await connectTo(server);
    known.write(Buffer.concat([head({ "Content-Length": "2" }), Buffer.from("k")]));
    await until(() => server.admission.bytes === taken + 6_001, "two are evicted");
    known.write("k");
    expect((await known.reply()).status).toBe(200);
    server.admission.release(taken);
    for (const wire of wires) wire.write("x");
    await Promise.all(wires.map((wire) => wire.reply()));
  });

  test("gives the memory of stalled bodies to bodies that arrive completely", async () => {
    const server = await startTestServer({ inflightBytesMax: 800_000 });
    const slow: Wire[] = [];
    for (let n = 1; n <= 9; n++) {
      const wire = await connectTo(server);
      wire.write(Buffer.concat([head({ "Content-Length": "100000" }), Buffer.alloc(99_999, "x")]));
      await until(() => server.admission.bytes === n * 99_999, "it is in hand");
      slow.push(wire);
    }
    const next = Buffer.concat([head({ "Content-Length": "50000" }), Buffer.alloc(50_000, "x")]);
    const early = await connectTo(server);
    early.write(next);
    expect(codeIn(await early.reply())).toBe("overloaded");
    const startedMs = performance.now();
    await until(() => performance.now() - startedMs > 1_500, "they are slow");
    early.write(next);
    expect((await early.reply()).status).toBe(200);
    expect(server.admission.bytes).toBe(8 * 99_999);
    for (const wire of slow) wire.write("x");
    const codes = await Promise.all(slow.map(async (wire) => (await wire.reply()).status));
    expect(codes.filter((status) => status === 503).length).toBe(1);
  });

  test("admits a new request if bodies without a key exceed the budget", async () => {
    const peek: Peek = () => ({ projectId: undefined, lane: undefined });
    const server = await startTestServer({ inflightBytesMax: 800_000, peek });
    const wires: Wire[] = [];
    for (let n = 1; n <= 9; n++) {
      const wire = await connectTo(server);
      wire.write(Buffer.concat([head({ "Content-Length": "100000" }), Buffer.alloc(99_999, "x")]));
      await until(() => server.admission.bytes === n * 99_999, "it is in hand");
      wires.push(wire);
    }
    server.admission.take(5_000);
    const next = await connectTo(server);
    next.write(Buffer.concat([head({ "Content-Length": "50000" }), Buffer.alloc(50_000, "x")]));
    expect((await next.reply()).status).toBe(200);
    server.admission.release(5_000);
    for (const wire of wires) wire.write("x");
    const codes = await Promise.all(wires.map(async (wire) => (await wire.reply()).status));
    expect(codes.filter((status) => status === 503).length).toBe(1);
  });
});
