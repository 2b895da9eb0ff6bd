import { randomBytes } from "node:crypto";
import { Transform } from "node:stream";
import zlib, { brotliCompressSync, brotliDecompressSync, constants, gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { inflateAtOnce, type QuickInflater, workOf } from "../../../src/gateway/body/inflate.ts";
import type { Peek } from "../../../src/gateway/http/port.ts";
import { loadAddon } from "../../../src/records/native.ts";
import {
  codeIn,
  connectTo,
  head,
  post,
  startTestServer,
  until,
  type Wire,
} from "../../kit/http-server.ts";

const held = post(brotliCompressSync(randomBytes(70_000)), { "Content-Encoding": "br" });

const ways = ["the addon", "node:zlib"] as const;

function toldOf(
  way: (typeof ways)[number],
  tell: (read: number, written: number) => void,
): QuickInflater | undefined {
  for (const name of ["gunzipSync", "inflateRawSync"] as const) {
    const inflateSync: typeof zlib.gunzipSync = zlib[name];
    const spy = vi.spyOn(zlib, name).mockImplementation(((
      ...given: Parameters<typeof inflateSync>
    ) => {
      const answer = inflateSync(...given) as unknown as { buffer: Buffer };
      tell((given[0] as Buffer).length, answer.buffer.length);
      return answer;
    }) as unknown as typeof inflateSync);
    onTestFinished(() => void spy.mockRestore());
  }
  if (way === "node:zlib") return undefined;
  const inflater = new (loadAddon().Inflater)();
  return {
    inflate(body, output, windowBits) {
      const written = inflater.inflate(body, output, windowBits);
      tell(body.length, Math.max(0, written));
      return written;
    },
  };
}

describe("concurrent inflation", () => {
  test("inflates all waiting bodies, even if some clients disconnect", async () => {
    const server = await startTestServer();
    const body = gzipSync("x".repeat(600_000));
    const wires = await Promise.all(Array.from({ length: 12 }, () => connectTo(server)));
    for (const wire of wires) wire.write(post(body, { "Content-Encoding": "gzip" }));
    for (const wire of wires.slice(6)) wire.socket.destroy();
    for (const wire of wires.slice(0, 6)) expect((await wire.reply()).status).toBe(200);
    await until(() => server.http.inflight() === 0, "all are done with");
    expect(server.admission.bytes).toBe(0);
  });
  const waiting = post(gzipSync("x".repeat(600_000)), { "Content-Encoding": "gzip" });

  test("keeps a disconnected client's slot until the thread pool has finished", async () => {
    const decoders = heldDecoders();
    const begun = vi.spyOn(zlib, "createGunzip");
    onTestFinished(() => void begun.mockRestore());
    const server = await startTestServer();
    const [first, second, leaver, third] = await sendAll(server, held, held, waiting, waiting);
    await until(() => decoders.length === 2, "two are at work");
    for (const wire of [first, second, leaver]) wire!.socket.destroy();
    await until(() => server.http.inflight() === 1, "three have left");
    await new Promise(setImmediate);
    expect(decoders.map(({ destroyed }) => destroyed)).toEqual([false, false]);
    expect(begun).not.toHaveBeenCalled();

    decoders[1]!.push(Buffer.alloc(9));
    expect((await third!.reply()).status).toBe(200);
    expect(decoders.map(({ destroyed }) => destroyed)).toEqual([false, true]);
    const [fourth, fifth] = [await connectTo(server), await connectTo(server)];
    fourth.write(held);
    await until(() => decoders.length === 3, "the next is at work");
    fifth.write(waiting);
    decoders[0]!.push(null);
    expect((await fifth.reply()).status).toBe(200);
    fourth.socket.destroy();
    await until(() => server.http.inflight() === 0, "no client waits");
    decoders[2]!.destroy(new Error("damaged"));
    const last = await connectTo(server);
    last.write(waiting);
    expect((await last.reply()).status).toBe(200);
    expect(server.taken.length).toBe(3);
  });

  test("rejects a waiting body at its deadline", async () => {
    const decoders = heldDecoders();
    let nowMs = 0;
    const server = await startTestServer({ monotonicMs: () => nowMs });
    const [first, second, third] = await sendAll(server, held, held, waiting);
    await until(() => decoders.length === 2, "two are at work");
    nowMs = 5_000;
    expect(codeIn(await third!.reply())).toBe("overloaded");
    expect(decoders.length).toBe(2);
    first!.socket.destroy();
    second!.socket.destroy();
  });

  const byFirstByte: Peek = (body) => ({
    projectId: /^[a-z]/.exec(body.toString("latin1", 0, 1))?.[0],
    lane: "live",
  });

  test("inflates a project's body while bodies without a key wait", async () => {
    const decoders = heldDecoders();
    const server = await startTestServer({ peek: byFirstByte });
    const wires = await sendAll(server, held, held, held);
    await until(() => decoders.length === 1, "one of them is at work");
    const known = await connectTo(server);
    const text = `p${randomBytes(5_000).toString("hex")}${"x".repeat(600_000)}`;
    known.write(post(gzipSync(text), { "Content-Encoding": "gzip" }));
    expect((await known.reply()).status).toBe(200);
    expect(decoders.length).toBe(1);
    for (const wire of wires) wire.socket.destroy();
    decoders[0]!.push(null);
    await until(() => server.http.inflight() === 0, "all are done with");
  });

  test.each([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
  ])("finds the project in the first inflated bytes of a %s body", async (coding, encode) => {
    const text = `b${randomBytes(200_000).toString("hex")}`;
    const server = await startTestServer({ peek: byFirstByte, bodyBytesMax: 1_000_000 });
    const wire = await connectTo(server);
    wire.write(post(encode(text), { "Content-Encoding": coding }));
    expect((await wire.reply()).status).toBe(200);
    expect(server.taken[0]?.exchange.hint?.projectId).toBe("b");
  });

  test("searches a body for its key at most five times", async () => {
    let looks = 0;
    const server = await startTestServer({
      peek: (body) => {
        looks++;
        return byFirstByte(body, false);
      },
    });
    const begun = vi.spyOn(zlib, "gunzipSync");
    onTestFinished(() => void begun.mockRestore());
    const bytes = gzipSync(`?${randomBytes(2_000).toString("hex")}`);
    const wire = await connectTo(server);
    wire.write(byteByByte(bytes, { "Content-Encoding": "gzip" }));
    expect((await wire.reply()).status).toBe(200);
    // The complete body and two peeks at its start, with up to two attempts each.
    expect(begun.mock.calls.length).toBeLessThanOrEqual(5);
    expect(looks).toBeLessThanOrEqual(5);
    looks = 0;
    const next = await connectTo(server);
    next.write(byteByByte(Buffer.alloc(6_000, "?")));
    expect((await next.reply()).status).toBe(200);
    expect(looks).toBeLessThanOrEqual(5);
  });

  test("finds a key that arrives late", async () => {
    const looked: number[] = [];
    const server = await startTestServer({
      peek: (body, isWhole) => {
        looked.push(body.length);
        const found = body.includes("key");
        return { projectId: found ? "p" : undefined, lane: isWhole ? "live" : undefined };
      },
    });
    const wire = await connectTo(server);
    wire.write(byteByByte(Buffer.from(`${"x".repeat(900)}key${"x".repeat(6_000)}`)));
    expect((await wire.reply()).status).toBe(200);
    expect(looked.slice(0, 3)).toEqual([1, 384, 1_024]);
    expect(looked.length).toBeLessThanOrEqual(4);
    expect(server.taken[0]?.exchange.hint?.projectId).toBe("p");
    const next = await connectTo(server);
    next.write(
      byteByByte(gzipSync(`${randomBytes(600).toString("hex")}key`), {
        "Content-Encoding": "gzip",
      }),
    );
    expect((await next.reply()).status).toBe(200);
    expect(server.taken[1]?.exchange.hint).toEqual({ projectId: "p", lane: "live" });
  });

  test.each(ways)(
    "inflates a limited number of bytes per turn of the event loop (%s)",
    async (way) => {
      const turn = turnCounter();
      const inflatedIn = new Map<number, number>();
      const inflater = toldOf(way, (_, written) => {
        inflatedIn.set(turn(), (inflatedIn.get(turn()) ?? 0) + written);
      });
      // Time does not count as work, because a busy machine needs more time.
      const settings = { inflightBytesMax: 64_000_000, monotonicMs: () => 0 };
      const server = await startTestServer({ ...settings, inflater });
      const small = post(gzipSync(Buffer.alloc(262_000, " ")), { "Content-Encoding": "gzip" });
      const wires = await Promise.all(Array.from({ length: 40 }, () => connectTo(server)));
      for (const wire of wires) wire.write(small);
      const untilMs = performance.now() + 50;
      while (performance.now() < untilMs);
      for (const wire of wires) expect((await wire.reply()).status).toBe(200);
      expect(Math.max(...inflatedIn.values())).toBeLessThanOrEqual(1_048_576 + 262_144);
      expect(Math.max(...inflatedIn.values())).toBeGreaterThan(262_144);
      expect(server.taken.length).toBe(40);
    },
  );

  test.each(ways)("counts empty blocks as work (%s)", async (way) => {
    const turn = turnCounter();
    const triedIn = new Map<number, number>();
    const inflater = toldOf(way, (read) => {
      if (read > 1_000) triedIn.set(turn(), (triedIn.get(turn()) ?? 0) + 1);
    });
    const server = await startTestServer({ inflater });
    const [empty, last] = [Buffer.from([0, 0, 0, 0xff, 0xff]), Buffer.from([1, 0, 0, 0xff, 0xff])];
    const nothing = Buffer.concat([...Array.from({ length: 12_000 }, () => empty), last]);
    const wires = await Promise.all(Array.from({ length: 40 }, () => connectTo(server)));
    for (const wire of wires) wire.write(post(nothing, { "Content-Encoding": "deflate" }));
    const untilMs = performance.now() + 50;
    while (performance.now() < untilMs);
    for (const wire of wires) expect(codeIn(await wire.reply())).toBe("empty_body");
    expect(triedIn.size).toBeGreaterThan(0);
    expect(Math.max(...triedIn.values())).toBeLessThanOrEqual(
      Math.ceil(1_048_576 / (4 * nothing.length)),
    );
  });

  test("counts bytes written, bytes read and time as work", () => {
    expect(workOf(0.01, 1_000, 9_000)).toBe(9_000);
    expect(workOf(0.1, 60_000)).toBe(240_000);
    expect(workOf(10, 60_000)).toBeGreaterThan(3 * 1_048_576);
  });

  test("inflates in large pieces even if the trailer's size is too small", () => {
    const spy = vi.spyOn(zlib, "inflateRawSync");
    onTestFinished(() => void spy.mockRestore());
    const lying = Buffer.concat([gzipSync(Buffer.alloc(262_000, " ")), gzipSync("")]);
    expect((inflateAtOnce("gzip", lying, 1_000_000) as Buffer).length).toBe(262_000);
    expect(spy.mock.calls[0]![1]!.chunkSize).toBeGreaterThanOrEqual(16_384);
  });

  /** Decoded in one step, so that a wrong guess of the window gives a wrong result. */
  test.each(Array.from({ length: 15 }, (_, place) => 10 + place))(
    "reads a Brotli window of 2^%i bytes, or leaves it to the thread pool",
    (bits) => {
      const text = randomBytes(20).toString("hex");
      const body = brotliCompressSync(text, {
        params: { [constants.BROTLI_PARAM_LGWIN]: bits, [constants.BROTLI_PARAM_QUALITY]: 5 },
      });
      const inflated = inflateAtOnce("br", body, 1_000_000);
      if (bits > 18) expect(inflated).toBeUndefined();
      else expect(inflated?.toString()).toBe(brotliDecompressSync(body).toString());
    },
  );
});

function heldDecoders(): Transform[] {
  const held: Transform[] = [];
  const spy = vi.spyOn(zlib, "createBrotliDecompress").mockImplementation(() => {
    const decoder = new Transform({ transform: () => {} });
    held.push(decoder);
    return decoder as unknown as zlib.BrotliDecompress;
  });
  onTestFinished(() => void spy.mockRestore());
  return held;
}

async function sendAll(
  server: Parameters<typeof connectTo>[0],
  ...requests: Buffer[]
): Promise<Wire[]> {
  const wires: Wire[] = [];
  for (const [place, request] of requests.entries()) {
    const wire = await connectTo(server);
    wire.write(request);
    wires.push(wire);
    await until(() => server.http.inflight() === place + 1, "it is here");
  }
  return wires;
}

function byteByByte(body: Buffer, headers: Record<string, string> = {}): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0, bytes = 1; at < body.length; at += bytes) {
    if (at === 1_024) bytes = 64;
    const piece = body.subarray(at, at + bytes);
    chunks.push(Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n"));
  }
  return Buffer.concat([
    head({ "Transfer-Encoding": "chunked", ...headers }),
    ...chunks,
    Buffer.from("0\r\n\r\n"),
  ]);
}

function turnCounter(): () => number {
  let turn = 0;
  let isOver = false;
  const nextTurn = (): void => {
    turn++;
    if (!isOver) setImmediate(nextTurn);
  };
  nextTurn();
  onTestFinished(() => {
    isOver = true;
  });
  return () => turn;
}
