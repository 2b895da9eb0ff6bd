import { describe, expect, test } from "vitest";
import { createNativeScanner, loadAddon } from "../../src/records/native.ts";
import { Header, ScanStatus, tableWords } from "../../src/records/table.ts";

const states = ["scanInBackground", "scanMoreInBackground"] as const;
const text = '{"batch":[{"event":"a"},\n{"event":"b"}]}';

describe("a busy scanner", () => {
  for (const state of states) {
    test(`rejects every call while ${state} is running`, async () => {
      const scanner = createNativeScanner(1);
      const body = Buffer.from(text);
      if (state === "scanMoreInBackground") scanner.scan(body);
      const underWay = scanner[state](body);
      const refused: Promise<unknown>[] = [];
      expect(() => scanner.finish()).toThrow(/busy/);
      expect(() => scanner.release()).toThrow(/busy/);
      // No scan can settle between these calls, because they are in one turn.
      for (const other of [body, Buffer.from("{}"), undefined as unknown as Buffer]) {
        expect(() => scanner.scan(other)).toThrow(/busy/);
        expect(() => scanner.scanMore(other)).toThrow(/busy/);
        refused.push(expect(scanner.scanInBackground(other)).rejects.toThrow(/busy/));
        refused.push(expect(scanner.scanMoreInBackground(other)).rejects.toThrow(/busy/));
      }
      await Promise.all(refused);
      await underWay;
      expect(scanner.table[Header.FirstItem]).toBe(state === "scanInBackground" ? 0 : 1);
      scanner.scanMore(body);
      await scanner.scanMoreInBackground(body);
      expect(scanner.scan(body)).toBe(ScanStatus.Ok);
      expect(await scanner.scanInBackground(body)).toBe(ScanStatus.Ok);
    });
  }

  test("accepts calls if the scan could not start", async () => {
    const scanner = createNativeScanner(1);
    await expect(scanner.scanInBackground("{}" as unknown as Buffer)).rejects.toThrow(TypeError);
    await expect(scanner.scanMoreInBackground(Buffer.from("{}"))).rejects.toThrow(/another length/);
    expect(scanner.scan(Buffer.from("{}"))).toBe(ScanStatus.Ok);
  });

  test("reports a body or a table that is detached during the scan", async () => {
    const table = new Uint32Array(tableWords(1));
    const scanner = new (loadAddon().EventScanner)(table);
    const body = Buffer.from(new ArrayBuffer(1_000_000)).fill(" ");
    const bodyTaken = scanner.scanInBackground(body);
    const copies = [structuredClone(body.buffer, { transfer: [body.buffer] })];
    await expect(bodyTaken).rejects.toThrow(/detached or resized/);
    expect(scanner.scan(Buffer.from("{}"))).toBe(ScanStatus.Ok);

    const tableTaken = scanner.scanInBackground(Buffer.from("{}"));
    copies.push(structuredClone(table.buffer, { transfer: [table.buffer] }));
    await expect(tableTaken).rejects.toThrow(/detached or resized/);
    expect(() => scanner.scan(Buffer.from("{}"))).toThrow(/table has been detached/);
    expect(copies.map((copy) => copy.byteLength)).toEqual([1_000_000, 4 * tableWords(1)]);
  });
});
