import zlib from "node:zlib";
import { describe, expect, test } from "vitest";
import type { Peek } from "../../../src/gateway/http/port.ts";
import { codeIn, connectTo, post, startTestServer } from "../../kit/http-server.ts";

const MIB = 1_048_576;

const window = {
  [zlib.constants.BROTLI_PARAM_LGWIN]: 24,
  [zlib.constants.BROTLI_PARAM_QUALITY]: 5,
};
const br = (text: string | Buffer) => zlib.brotliCompressSync(text, { params: window });
const zstd = (text: string | Buffer) => zlib.zstdCompressSync(text);

async function answerTo(coding: string, body: Buffer, peek?: Peek) {
  const limits = {
    bodyBytesMax: 4 * MIB,
    inflatedBytesMax: 20 * MIB,
    inflightBytesMax: 64 * MIB,
    peek,
  };
  const server = await startTestServer(limits);
  const wire = await connectTo(server);
  wire.write(post(body, { "Content-Encoding": coding }));
  const reply = await wire.reply();
  return { reply, inflated: server.taken[0]?.text.length };
}

describe("the expansion limit of a body", () => {
  test.each([
    ["br", br],
    ["zstd", zstd],
  ])("stops a tiny %s body that inflates past 8 MiB", async (coding, encode) => {
    const { reply } = await answerTo(coding, encode(Buffer.alloc(9 * MIB, " ")));
    expect([reply.status, codeIn(reply)]).toEqual([413, "inflated_too_large"]);
    expect(JSON.parse(reply.body).detail).toBe(
      "The body has more than 8388608 bytes after decompression, and more than 1032 times the bytes sent",
    );
  });

  test.each([
    ["br", br],
    ["zstd", zstd],
  ])("allows a tiny %s body to inflate to 8 MiB", async (coding, encode) => {
    const { reply, inflated } = await answerTo(coding, encode(Buffer.alloc(8 * MIB, " ")));
    expect([reply.status, inflated]).toEqual([200, 8 * MIB]);
  });

  test("allows the best compression ratio of deflate", async () => {
    const { reply, inflated } = await answerTo(
      "deflate",
      zlib.deflateRawSync(Buffer.alloc(20 * MIB, " "), { level: 9 }),
    );
    expect([reply.status, inflated]).toEqual([200, 20 * MIB]);
  });

  const events = Array.from({ length: 60_000 }, (_, n) => ({
    event: "page",
    distinct_id: "user",
    timestamp: "2025-01-01T00:00:00Z",
    properties: {
      $current_url: "https://shop.example/a/b/c?d=e",
      $browser: "Firefox",
      plan: "free",
      n,
    },
  }));

  test.each([
    ["br", br],
    ["zstd", zstd],
  ])("allows a %s body of events that differ only in a number", async (coding, encode) => {
    const text = JSON.stringify({ api_key: "k", batch: events });
    expect(text.length).toBeGreaterThan(8 * MIB);
    const { reply, inflated } = await answerTo(coding, encode(text));
    expect([reply.status, inflated]).toEqual([200, text.length]);
  });

  const nobodys: Peek = () => ({ projectId: undefined, lane: undefined });
  const somebodys: Peek = () => ({ projectId: "p", lane: undefined });

  test.each([
    ["gzip", zlib.gzipSync],
    ["br", br],
    ["zstd", zstd],
  ])("limits the expansion of a %s body without a known key", async (coding, encode) => {
    const body = encode(Buffer.alloc(20 * MIB, " "));
    const { reply } = await answerTo(coding, body, nobodys);
    expect([reply.status, codeIn(reply)]).toEqual([413, "inflated_too_large"]);
    expect(JSON.parse(reply.body).detail).toBe(
      "The body has more than 8388608 bytes after decompression, and more than 200 times the bytes sent, and no api_key of a project in its first bytes",
    );
  });

  test("allows the best compression of deflate if the key is known", async () => {
    const { reply, inflated } = await answerTo(
      "gzip",
      zlib.gzipSync(Buffer.alloc(20 * MIB, " "), { level: 9 }),
      somebodys,
    );
    expect([reply.status, inflated]).toEqual([200, 20 * MIB]);
  });

  test("allows different events even without a known key", async () => {
    const text = JSON.stringify({ batch: events, api_key: "k" });
    const { reply, inflated } = await answerTo("gzip", zlib.gzipSync(text), nobodys);
    expect([reply.status, inflated]).toEqual([200, text.length]);
  });
});
