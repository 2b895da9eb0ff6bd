import zlib from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  atOnceBytesMax,
  atOnceInflatedBytesMax,
  inflateAtOnce,
  QuickInflation,
} from "../../../src/gateway/body/inflate.ts";
import { loadAddon } from "../../../src/records/native.ts";

const { Inflater } = loadAddon();
const bytesMax = 50_000;
const quick = new QuickInflation(new Inflater(), bytesMax);

const encoders = {
  gzip: zlib.gzipSync,
  zlib: zlib.deflateSync,
  raw: zlib.deflateRawSync,
} as const;

const anyBody = fc.record({
  text: fc.oneof(
    fc.json(),
    fc.string({ maxLength: 2_000 }),
    fc.integer({ min: 0, max: 2 * bytesMax }).map((length) => "ab\u{e9}".repeat(length / 3)),
  ),
  form: fc.constantFrom("gzip", "zlib", "raw"),
  level: fc.integer({ min: 0, max: 9 }),
  strategy: fc.constantFrom(0, 1, 2, 3, 4),
});

const anyDamage = fc.record({
  kind: fc.constantFrom("none", "cut", "flipped", "joined", "followed", "cut at the start"),
  at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
});

function damaged(body: Buffer, kind: string, at: number): Buffer {
  const place = Math.floor(at * body.length);
  switch (kind) {
    case "cut":
      return body.subarray(0, place);
    case "cut at the start":
      return body.subarray(place);
    case "joined":
      return Buffer.concat([body, body]);
    case "followed":
      return Buffer.concat([body, Buffer.alloc(1 + place, place)]);
    case "flipped": {
      const flipped = Buffer.from(body);
      if (place < flipped.length) flipped[place]! ^= 1 << (place % 8);
      return flipped;
    }
    default:
      return body;
  }
}

describe("inflation in the addon", () => {
  test("returns the same bytes as node:zlib, or leaves the body to node:zlib", () => {
    const property = fc.property(
      anyBody,
      anyDamage,
      fc.constantFrom("gzip", "deflate", "br", "zstd"),
      ({ text, form, level, strategy }, { kind, at }, coding) => {
        const body = damaged(encoders[form](text, { level, strategy }), kind, at);
        const inflated = quick.inflated(coding, body);
        if (inflated !== undefined) expect(inflateAtOnce(coding, body, bytesMax)).toEqual(inflated);
      },
    );
    fc.assert(property, { numRuns: 1_000 });
  });

  test("inflates every complete body that fits", () => {
    const property = fc.property(anyBody, ({ text, form, level, strategy }) => {
      const body = encoders[form](text, { level, strategy });
      const bytes = Buffer.from(text);
      const inflated = quick.inflated(form === "gzip" ? "gzip" : "deflate", body);
      if (bytes.length > bytesMax || body.length > atOnceBytesMax) expect(inflated).toBeUndefined();
      else expect(inflated).toEqual(bytes);
    });
    fc.assert(property, { numRuns: 1_000 });
  });

  test("reuses the memory of the previous body", () => {
    const one = quick.inflated("gzip", zlib.gzipSync("one"));
    const other = quick.inflated("deflate", zlib.deflateSync("other"));
    expect(other?.toString()).toBe("other");
    expect(other?.buffer).toBe(one?.buffer);
    expect(other?.buffer.byteLength).toBe(bytesMax);
  });

  test("inflates no more than the limit of one turn of the event loop", () => {
    const wide = new QuickInflation(new Inflater(), Number.MAX_SAFE_INTEGER);
    const most = zlib.deflateSync(Buffer.alloc(atOnceInflatedBytesMax));
    expect(wide.inflated("deflate", most)).toHaveLength(atOnceInflatedBytesMax);
    const more = zlib.deflateSync(Buffer.alloc(atOnceInflatedBytesMax + 1));
    expect(wide.inflated("deflate", more)).toBeUndefined();
  });
});
