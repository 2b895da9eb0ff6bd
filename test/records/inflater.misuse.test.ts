import zlib from "node:zlib";
import { describe, expect, test } from "vitest";
import { loadAddon } from "../../src/records/native.ts";

const { Inflater } = loadAddon();
const gzip = 31;
const body = zlib.gzipSync("text");

describe("the inflater", () => {
  test.each([
    ["no arguments", []],
    ["a string as the body", ["text", Buffer.alloc(9), gzip]],
    ["a Uint32Array as the output", [body, new Uint32Array(9), gzip]],
    ["no window bits", [body, Buffer.alloc(9), "31"]],
    ["an output that overlaps the body", [body, body, gzip]],
  ])("throws on %s", (_, args) => {
    const inflate = new Inflater().inflate as (...args: unknown[]) => number;
    expect(() => inflate.apply(new Inflater(), args)).toThrow(TypeError);
  });

  test("throws when called without its object", () => {
    const { inflate } = new Inflater();
    expect(() => inflate.call({} as never, body, Buffer.alloc(9), gzip)).toThrow(TypeError);
    expect(() => (Inflater as unknown as () => void)()).toThrow(TypeError);
  });

  test("returns -1 for invalid window bits and works afterwards", () => {
    const inflater = new Inflater();
    const output = Buffer.alloc(9);
    expect(inflater.inflate(body, output, 99)).toBe(-1);
    expect(inflater.inflate(body, output, gzip)).toBe(4);
    expect(inflater.inflate(body, output, 99)).toBe(-1);
    expect(inflater.inflate(body.subarray(0, 15), output, gzip)).toBe(-1);
    expect(inflater.inflate(Buffer.alloc(0), output, gzip)).toBe(-1);
    expect(inflater.inflate(body, Buffer.alloc(0), gzip)).toBe(-1);
    expect(inflater.inflate(body, output.subarray(0, 4), gzip)).toBe(4);
    expect(output.toString("latin1", 0, 4)).toBe("text");
  });

  test("returns -1 for a detached output", () => {
    const output = new Uint8Array(9);
    structuredClone(output.buffer, { transfer: [output.buffer] });
    expect(new Inflater().inflate(body, output, gzip)).toBe(-1);
  });
});
