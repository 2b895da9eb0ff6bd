// When a batch has had enough.

import { expect, test } from "vitest";
import { Batch } from "../../../../src/readers/effects/writer/transaction.ts";

test("a batch has room for so many events, for twice as many beside another one", () => {
  const batch = new Batch();
  batch.events = 9;
  expect(batch.hasRoom(10, false)).toBe(true);
  batch.events = 10;
  expect(batch.hasRoom(10, false)).toBe(false);
  expect(batch.hasRoom(10, true)).toBe(true);
  batch.events = 20;
  expect(batch.hasRoom(10, true)).toBe(false);
});

test("a batch of which parts are written ends, however few events it has", () => {
  const batch = new Batch();
  expect(batch.hasRoom(10, true)).toBe(true);
  batch.hasParts = true;
  expect(batch.hasRoom(10, true)).toBe(false);
});
