import { describe, expect, test } from "vitest";
import { loadAddon } from "../../src/records/native.ts";
import { ScanStatus, tableWords } from "../../src/records/table.ts";

const { EventScanner } = loadAddon();
const oneRow = tableWords(1);

const methods = ["scan", "scanMore", "scanInBackground", "scanMoreInBackground"] as const;

function call(target: unknown, name: (typeof methods)[number], ...parameters: unknown[]): unknown {
  return Reflect.apply(EventScanner.prototype[name], target, parameters);
}

const wrongBodies = [
  undefined,
  null,
  1,
  "{}",
  {},
  [],
  new ArrayBuffer(8),
  new Uint16Array(4),
  new DataView(new ArrayBuffer(2)),
];

describe("the addon's binding", () => {
  test("throws on a table that is invalid or too small", () => {
    const wrongTables = [
      ...wrongBodies,
      new Uint8Array(1000),
      new Float32Array(1000),
      new Uint32Array(oneRow - 1),
    ];
    for (const table of wrongTables) {
      expect(() => Reflect.construct(EventScanner, [table])).toThrow(TypeError);
    }
    expect(() => Reflect.construct(EventScanner, [])).toThrow(TypeError);
    expect(() => Reflect.apply(EventScanner, undefined, [new Uint32Array(oneRow)])).toThrow(
      TypeError,
    );
  });

  test("throws on a body that is not a Uint8Array", () => {
    const scanner = new EventScanner(new Uint32Array(oneRow));
    for (const method of methods) {
      for (const body of wrongBodies) expect(() => call(scanner, method, body)).toThrow(TypeError);
      expect(() => call(scanner, method)).toThrow(TypeError);
    }
  });

  test("throws on a range that is not within the body", () => {
    const scanner = new EventScanner(new Uint32Array(oneRow));
    const body = Buffer.from("[1]");
    const part = (...offsets: unknown[]) =>
      Reflect.apply(EventScanner.prototype.scanPart, scanner, [body, ...offsets]);
    for (const offsets of [[], [0], [0, 4], [2, 1], [4, 4], [-1, 3], [0, "3"], [0, undefined]])
      expect(() => part(...offsets)).toThrow(TypeError);
    for (const wrong of wrongBodies)
      expect(() => Reflect.apply(EventScanner.prototype.scanPart, scanner, [wrong, 0, 0])).toThrow(
        TypeError,
      );
    expect(part(1, 2)).toBe(ScanStatus.Ok);
    expect(part(3, 3)).toBe(ScanStatus.Empty);
    expect(scanner.scanPart(Buffer.alloc(0), 0, 0)).toBe(ScanStatus.Empty);
  });

  test("throws on a method called on another object", () => {
    const body = Buffer.from("{}");
    for (const target of [
      undefined,
      null,
      {},
      Object.create(EventScanner.prototype),
      new Date(),
      EventScanner,
    ]) {
      for (const method of methods) expect(() => call(target, method, body)).toThrow(TypeError);
    }
  });

  test("throws on scanMore before a scan or with another body", () => {
    const scanner = new EventScanner(new Uint32Array(oneRow));
    expect(() => scanner.scanMore(Buffer.alloc(0))).toThrow(/another length/);
    expect(() => scanner.scanMoreInBackground(Buffer.alloc(0))).toThrow(/another length/);
    scanner.scan(Buffer.from("[1]"));
    expect(() => scanner.scanMore(Buffer.from("[1 ]"))).toThrow(/another length/);
    expect(() => scanner.scanMoreInBackground(Buffer.from("[1 ]"))).toThrow(/another length/);
  });

  test("throws on a detached table", () => {
    const table = new Uint32Array(oneRow);
    const scanner = new EventScanner(table);
    structuredClone(table.buffer, { transfer: [table.buffer] });
    expect(() => scanner.scan(Buffer.from("{}"))).toThrow(TypeError);
    expect(() => scanner.scanInBackground(Buffer.from("{}"))).toThrow(TypeError);
  });

  test("accepts an empty or a detached body as empty", async () => {
    const scanner = new EventScanner(new Uint32Array(oneRow));
    const detached = Buffer.from(new ArrayBuffer(4));
    structuredClone(detached.buffer, { transfer: [detached.buffer] });
    expect(scanner.scan(Buffer.alloc(0))).toBe(ScanStatus.Empty);
    expect(scanner.scan(detached)).toBe(ScanStatus.Empty);
    expect(await scanner.scanInBackground(Buffer.alloc(0))).toBe(ScanStatus.Empty);
    expect(await scanner.scanInBackground(detached)).toBe(ScanStatus.Empty);
  });
});
