import fc from "fast-check";
import { expect, test } from "vitest";
import type { StoredLine } from "../../../../src/readers/effects/lines/line.ts";
import type { ActiveIdsRow, UsageClass } from "../../../../src/readers/effects/types.ts";
import { IdSketch } from "../../../../src/readers/effects/usage/id-sketch.ts";
import { Usage } from "../../../../src/readers/effects/usage/usage.ts";
import { storedFrame, storedLine } from "../line-kit.ts";

const dayMs = 24 * 3_600_000;
const startMs = Date.UTC(2026, 10, 22);

class Kept {
  readonly sums = new Map<string, [events: number, duplicates: number]>();
  readonly sketches = new Map<string, ActiveIdsRow>();

  commit({ usage, activeIds }: ReturnType<Usage["changes"]>): void {
    for (const { projectId, day, lane, class: usageClass, events, duplicates } of usage) {
      const key = `${projectId} ${day} ${lane} ${usageClass}`;
      const [eventsBefore, duplicatesBefore] = this.sums.get(key) ?? [0, 0];
      this.sums.set(key, [eventsBefore + events, duplicatesBefore + duplicates]);
    }
    for (const row of activeIds) this.sketches.set(`${row.projectId} ${row.day}`, row);
  }

  endBatch(usage: Usage): ReturnType<Usage["changes"]> {
    const missing = usage.missing();
    usage.adopt(
      missing.flatMap(({ projectId, day }) => this.sketches.get(`${projectId} ${day}`) ?? []),
    );
    return usage.changes();
  }

  dump(): unknown {
    const sketches = [...this.sketches].map(([key, { registers, estimate }]) => [
      key,
      Buffer.from(registers).toString("hex"),
      estimate,
    ]);
    return { sums: Object.fromEntries([...this.sums].sort()), sketches: sketches.sort() };
  }
}

function counted(...lines: (Partial<StoredLine> & { isDuplicate?: boolean })[]): Kept {
  const kept = new Kept();
  const usage = new Usage();
  for (const { isDuplicate = false, ...line } of lines)
    usage.count(storedLine({ receivedAtMs: startMs, ...line }), isDuplicate);
  kept.commit(kept.endBatch(usage));
  return kept;
}

test("usage counts events and duplicates by project, UTC day, stream and class", () => {
  const historical = storedFrame({ lane: "historical" });
  const kept = counted(
    {},
    { receivedAtMs: startMs + dayMs - 1 },
    { receivedAtMs: startMs + dayMs },
    { isDuplicate: true },
    { usageClass: "survey" },
    { projectId: "other" },
    { frame: historical },
    { frame: historical, isDuplicate: true, usageClass: "alias" },
  );
  expect(Object.fromEntries(kept.sums)).toEqual({
    "p 2026-11-22 live identified": [2, 1],
    "p 2026-11-23 live identified": [1, 0],
    "p 2026-11-22 live survey": [1, 0],
    "p 2026-11-22 historical identified": [1, 0],
    "p 2026-11-22 historical alias": [0, 1],
    "other 2026-11-22 live identified": [1, 0],
  });
});

test("active ids are the distinct ids of live events with a person", () => {
  const kept = counted(
    { distinctId: "a" },
    { distinctId: "a" },
    { distinctId: "b" },
    { distinctId: "anonymous", hasPerson: false },
    { distinctId: "sent again", isDuplicate: true },
    { distinctId: "imported", frame: storedFrame({ lane: "historical" }) },
  );
  expect([...kept.sketches.values()].map(({ day, estimate }) => [day, estimate])).toEqual([
    ["2026-11-22", 2],
  ]);
});

test("a day is not written again if its ids are known", () => {
  const kept = new Kept();
  const usage = new Usage();
  usage.count(storedLine({ distinctId: "a" }), false);
  kept.commit(kept.endBatch(usage));
  usage.count(storedLine({ distinctId: "a" }), false);
  expect(kept.endBatch(usage).activeIds).toEqual([]);
  usage.discard();
  usage.count(storedLine({ distinctId: "a" }), false);
  expect(kept.endBatch(usage).activeIds).toEqual([]);
});

test("usage does not depend on batches, failed commits, restarts or the cache", () => {
  const classes: UsageClass[] = ["identified", "anonymous", "identify"];
  const lines = fc.array(
    fc.record({
      projectId: fc.constantFrom("p", "q", "r"),
      receivedAtMs: fc.integer({ min: startMs, max: startMs + 3 * dayMs }),
      usageClass: fc.constantFrom(...classes),
      distinctId: fc.nat(40).map(String),
      hasPerson: fc.boolean(),
      isDuplicate: fc.boolean(),
      isLive: fc.boolean(),
      next: fc.constantFrom("nothing", "nothing", "nothing", "commit", "discard", "restart"),
    }),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(lines, (wanted) => {
      const stored = wanted.map(({ isDuplicate, isLive, next, ...line }) => {
        const frame = storedFrame({ lane: isLive ? "live" : "historical" });
        return { line: storedLine({ ...line, frame }), isDuplicate, next };
      });
      const atOnce = new Kept();
      const all = new Usage();
      for (const { line, isDuplicate } of stored) all.count(line, isDuplicate);
      atOnce.commit(atOnce.endBatch(all));

      const kept = new Kept();
      let usage = new Usage({ daysMax: 2 });
      let [inFlight, inFlightEnd]: [ReturnType<Usage["changes"]> | undefined, number] = [
        undefined,
        0,
      ];
      let committed = 0;
      const settle = () => {
        if (inFlight === undefined) return;
        kept.commit(inFlight);
        usage.committed();
        committed = inFlightEnd;
        inFlight = undefined;
      };
      for (let at = 0; at < stored.length; ) {
        const one = stored[at++]!;
        usage.count(one.line, one.isDuplicate);
        if (one.next === "commit") {
          settle();
          [inFlight, inFlightEnd] = [kept.endBatch(usage), at];
        } else if (one.next === "discard" || one.next === "restart") {
          if (one.next === "discard") usage.discard();
          else usage = new Usage({ daysMax: 2 });
          inFlight = undefined;
          at = committed;
          one.next = "nothing";
        }
      }
      settle();
      kept.commit(kept.endBatch(usage));
      expect(kept.dump()).toEqual(atOnce.dump());
    }),
    { numRuns: 100 },
  );
});

test("later counts do not change usage that was already returned", () => {
  const usage = new Usage();
  for (let at = 0; at < 1_000; at++) usage.count(storedLine({ distinctId: String(at) }), false);
  usage.adopt([]);
  const { activeIds } = usage.changes();
  const before = IdSketch.from(activeIds[0]!.registers).estimate();
  for (let at = 0; at < 9_000; at++) usage.count(storedLine({ distinctId: `${at}` }), false);
  expect(IdSketch.from(activeIds[0]!.registers).estimate()).toBe(before);
});
