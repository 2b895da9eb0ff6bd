import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  Duplicates,
  DuplicatesBudget,
} from "../../../../src/readers/effects/duplicates/duplicates.ts";
import { HashSet64 } from "../../../../src/readers/stream/hash-set.ts";
import { storedFrame, storedLine } from "../line-kit.ts";

const minuteMs = 60_000;
const startMs = Date.UTC(2026, 10, 22, 12);

interface Sent {
  readonly uuid: number;
  readonly ms: number;
}

function memory(
  bytesMax: number,
  position?: ConstructorParameters<typeof Duplicates>[0]["position"],
) {
  return new Duplicates({ budget: new DuplicatesBudget({ bytesMax }), lane: "live", position });
}

function lineOf(sequence: number, { uuid, ms }: Sent) {
  const words = { uuidHashHigh: uuid % 3, uuidHashLow: uuid >> 2 };
  return storedLine({ frame: storedFrame({ sequence }), receivedAtMs: ms, ...words });
}

function feed(duplicates: Duplicates, sequence: number, lines: readonly Sent[]): boolean[] {
  const said = lines.map((line) => duplicates.add(lineOf(sequence, line)));
  duplicates.endFrame(sequence);
  return said;
}

test("a repeated uuid counts as a duplicate for at least half an hour", () => {
  const duplicates = memory(1e6);
  expect(feed(duplicates, 1, [{ uuid: 1, ms: startMs }])).toEqual([false]);
  expect(feed(duplicates, 2, [{ uuid: 1, ms: startMs }])).toEqual([true]);
  feed(duplicates, 3, [{ uuid: 2, ms: startMs + 29 * minuteMs }]);
  feed(duplicates, 4, [{ uuid: 3, ms: startMs + 59 * minuteMs }]);
  expect(duplicates.coveredMs).toBe(59 * minuteMs);
  expect(feed(duplicates, 5, [{ uuid: 2, ms: startMs + 59 * minuteMs }])).toEqual([true]);
  feed(duplicates, 6, [{ uuid: 4, ms: startMs + 61 * minuteMs }]);
  expect(feed(duplicates, 7, [{ uuid: 1, ms: startMs + 61 * minuteMs }])).toEqual([false]);
  expect(duplicates.coveredMs).toBe(2 * minuteMs);
  expect(duplicates.changes()).toEqual({
    duplicatesFrom: [5, 7],
    watermarkMs: startMs + 61 * minuteMs,
  });
});

test("a line from a slow clock does not move the deduplication window back", () => {
  const duplicates = memory(1e6);
  feed(duplicates, 1, [{ uuid: 1, ms: startMs }]);
  feed(duplicates, 2, [{ uuid: 2, ms: startMs - 45 * minuteMs }]);
  expect(feed(duplicates, 3, [{ uuid: 2, ms: startMs }])).toEqual([true]);
  expect(duplicates.watermarkMs).toBe(startMs);
  expect(duplicates.changes().duplicatesFrom).toEqual([1, 1]);
});

test("a line from a fast clock does not move the deduplication window", () => {
  const duplicates = memory(1e6);
  const frame = storedFrame({ storedAtMs: startMs });
  duplicates.add(storedLine({ frame, receivedAtMs: startMs + 365 * 24 * 60 * minuteMs }));
  duplicates.endFrame(1);
  expect(duplicates.watermarkMs).toBe(startMs);
  duplicates.add(storedLine({ frame, receivedAtMs: startMs + 59 * minuteMs }));
  expect(duplicates.watermarkMs).toBe(startMs + 59 * minuteMs);
});

test("the deduplication memory forgets the oldest uuids when it is full", () => {
  const budget = new DuplicatesBudget({ bytesMax: 64 * 1024 });
  const duplicates = new Duplicates({ budget, lane: "live", position: undefined });
  for (let at = 0; at < 20_000; at++) {
    feed(duplicates, at + 1, [{ uuid: at, ms: startMs + at }]);
    duplicates.changes();
    duplicates.committed();
    expect(budget.bytes).toBeLessThanOrEqual(64 * 1024);
  }
  expect(duplicates.coveredMs).toBeLessThan(10_000);
  expect(feed(duplicates, 20_001, [{ uuid: 19_000, ms: startMs }])).toEqual([true]);
  expect(feed(duplicates, 20_002, [{ uuid: 1, ms: startMs }])).toEqual([false]);
  duplicates.close();
  expect(budget.bytes).toBe(0);
});

test("each stream is deduplicated independently within one budget", () => {
  const bytesMax = 64 * 1024;
  const streams = [{ lane: "live" }, { lane: "historical" }, { lane: "live" }] as const;
  const uuids = Array.from({ length: 8_000 }, (_, at) => (at * 7) % 2_500);
  const apart = streams.map(({ lane }) => {
    const budget = new DuplicatesBudget({ bytesMax, streams });
    const duplicates = new Duplicates({ budget, lane, position: undefined });
    return uuids.map((uuid, at) => feed(duplicates, at + 1, [{ uuid, ms: startMs }]));
  });
  const budget = new DuplicatesBudget({ bytesMax });
  const memories = streams.map(({ lane }) => new Duplicates({ budget, lane, position: undefined }));
  const together = memories.map((): boolean[][] => []);
  for (const [at, uuid] of uuids.entries()) {
    for (const [nth, one] of memories.entries())
      together[nth]!.push(feed(one, at + 1, [{ uuid, ms: startMs }]));
    expect(budget.bytes).toBeLessThanOrEqual(bytesMax);
  }
  expect(together).toEqual(apart);
  // The memory was full. Otherwise, every repeated uuid would be reported.
  expect(apart.map((said) => said.flat().filter(Boolean).length)).not.toContain(5_500);
});

describe("deduplication that was stopped, restored or rolled back", () => {
  const steps = fc.array(
    fc.record({
      lines: fc.array(
        fc.record({
          uuid: fc.nat(400),
          afterMs: fc.integer({ min: -minuteMs, max: 4 * minuteMs }),
        }),
        { maxLength: 20 },
      ),
      next: fc.constantFrom("nothing", "nothing", "changes", "commit", "discard", "stop"),
    }),
    { minLength: 20, maxLength: 120 },
  );

  test("gives the same result as uninterrupted deduplication", () => {
    fc.assert(
      fc.property(steps, fc.constantFrom(1_000, 12_000, 1e6), (wanted, bytesMax) => {
        let ms = startMs;
        const frames = wanted.map(({ lines }) =>
          lines.map(({ uuid, afterMs }) => {
            ms += afterMs;
            return { uuid, ms };
          }),
        );
        const undisturbed = memory(bytesMax);
        const expected = frames.map((lines, at) => feed(undisturbed, at + 1, lines));

        let duplicates = memory(bytesMax);
        const applied: boolean[][] = [];
        let [inFlight, committed] = [0, 0];
        let [sent, position] = [duplicates.changes(), duplicates.changes()];
        const nexts = wanted.map(({ next }) => next);
        while (applied.length < frames.length) {
          const at = applied.length;
          applied.push(feed(duplicates, at + 1, frames[at]!));
          const next = nexts[at]!;
          nexts[at] = "nothing";
          if (next === "changes" || next === "commit") {
            if (next === "commit") [sent, inFlight] = [duplicates.changes(), at + 1];
            duplicates.committed();
            [position, committed] = [sent, inFlight];
            if (next === "changes") [sent, inFlight] = [duplicates.changes(), at + 1];
          } else if (next === "discard") {
            duplicates.discard();
            [sent, inFlight] = [duplicates.changes(), committed];
            applied.length = committed;
          } else if (next === "stop") {
            duplicates = memory(bytesMax, position);
            for (let read = position.duplicatesFrom[0]; read <= committed; read++)
              for (const line of frames[read - 1] ?? []) duplicates.remember(lineOf(read, line));
            duplicates.restored();
            [sent, inFlight] = [duplicates.changes(), committed];
            applied.length = committed;
          }
        }
        expect(applied).toEqual(expected);
        expect(duplicates.changes()).toEqual(undisturbed.changes());
      }),
      { numRuns: 150 },
    );
  });
});

test("a set of hashes holds the hashes that were added and not deleted", () => {
  const word = fc.oneof(fc.constantFrom(0, 1, 2, -1, 0xffffffff), fc.integer());
  const hashes = fc.array(fc.tuple(fc.boolean(), fc.constantFrom(0, 1, 5), word));
  fc.assert(
    fc.property(hashes, (changes) => {
      const set = new HashSet64();
      const model = new Set<string>();
      for (const [isAdded, high, low] of changes) {
        // The hashes 0 and 1 are stored as the same value.
        const name = `${high} ${high === 0 && low === 0 ? 1 : low >>> 0}`;
        if (isAdded) expect(set.add(high, low)).toBe(!model.has(name));
        else set.delete(high, low);
        if (isAdded) model.add(name);
        else model.delete(name);
        expect(set.size).toBe(model.size);
      }
      for (const [, high, low] of changes)
        expect(set.has(high, low)).toBe(
          model.has(`${high} ${high === 0 && low === 0 ? 1 : low >>> 0}`),
        );
    }),
  );
});
