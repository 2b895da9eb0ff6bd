import { expect, test } from "vitest";
import { DuplicatesBudget } from "../../../../src/readers/effects/duplicates/duplicates.ts";
import { StreamInMemory } from "../../../../src/readers/effects/writer/stream-in-memory.ts";
import { storedFrame, storedLine } from "../line-kit.ts";

const place = { epoch: 1, created: "2026-11-22T00:00:00Z", sequence: 0, trail: [] };
const name = { stream: "PENSTOCK_LIVE_0", lane: "live", partition: 0 } as const;

function begun(): StreamInMemory {
  const budget = new DuplicatesBudget({ bytesMax: 1e6 });
  const stream = new StreamInMemory(name, budget);
  stream.moveTo(place);
  return stream;
}

function apply(stream: StreamInMemory, sequence: number, uuid: number): boolean {
  const frame = storedFrame({ sequence, messageId: `m${sequence}` });
  stream.beginFrame();
  const isDuplicate = stream.duplicates.add(storedLine({ frame, uuidHashLow: uuid }));
  stream.endFrame(frame);
  return isDuplicate;
}

test("deduplication recognises only committed events after a failed commit", () => {
  const stream = begun();
  apply(stream, 1, 10);
  const committed = stream.position();
  stream.committed();
  apply(stream, 2, 20);
  stream.position();
  apply(stream, 3, 30);
  expect(stream.returnTo(committed)).toBe(true);
  expect(stream.position()).toEqual(committed);
  expect([20, 30, 10].map((uuid, at) => apply(stream, 2 + at, uuid))).toEqual([false, false, true]);
});

test("deduplication starts again if the position in the store has changed", () => {
  const stream = begun();
  apply(stream, 1, 10);
  stream.position();
  stream.committed();
  apply(stream, 2, 20);
  // This position was committed, but the answer was lost.
  expect(stream.returnTo(stream.position())).toBe(false);
});

test("deduplication is incomplete after a restart until earlier events are read again", () => {
  const stream = begun();
  apply(stream, 1, 10);
  const position = stream.position();
  const budget = new DuplicatesBudget({ bytesMax: 1e6 });
  const restarted = new StreamInMemory(name, budget, { position });
  expect(restarted.isWhole).toBe(false);
  expect(restarted.returnTo(position)).toBe(false);
});
