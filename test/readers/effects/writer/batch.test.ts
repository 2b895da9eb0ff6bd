import { expect, test } from "vitest";
import { Batch } from "../../../../src/readers/effects/writer/transaction.ts";

test("a batch may double its events while the previous batch is committed", () => {
  const batch = new Batch();
  batch.events = 9;
  expect(batch.hasRoom(10, false)).toBe(true);
  batch.events = 10;
  expect(batch.hasRoom(10, false)).toBe(false);
  expect(batch.hasRoom(10, true)).toBe(true);
  batch.events = 20;
  expect(batch.hasRoom(10, true)).toBe(false);
});

test("a batch ends when some of its rows are written", () => {
  const batch = new Batch();
  expect(batch.hasRoom(10, true)).toBe(true);
  batch.hasParts = true;
  expect(batch.hasRoom(10, true)).toBe(false);
});
