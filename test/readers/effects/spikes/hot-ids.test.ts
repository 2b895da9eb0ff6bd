import fc from "fast-check";
import { expect, test } from "vitest";
import { HotIds } from "../../../../src/readers/effects/spikes/hot-ids.ts";
import { idHashOf } from "../line-kit.ts";

const ids = fc.array(
  fc.oneof(fc.constantFrom("often", "also often"), fc.nat(20).map(String), fc.nat(400).map(String)),
  { minLength: 200, maxLength: 2_000 },
);

function hashOf(id: string): number {
  return idHashOf(id).idHashHigh;
}

/** Space-Saving as in the paper. Evicts the first of the ids with the lowest count. */
function plainCounters(sent: readonly string[]): readonly (readonly [string, number, number])[] {
  const counters: [string, number, number][] = [];
  let [least, passed] = [0, 0];
  for (const id of sent) {
    const known = counters.find(([one]) => one === id);
    if (known !== undefined) known[1]++;
    else if (counters.length < 64) counters.push([id, 1, 0]);
    else {
      while (counters[passed]?.[1] !== least) {
        passed++;
        if (passed < 64) continue;
        least = Math.min(...counters.map(([, count]) => count));
        passed = 0;
      }
      counters[passed] = [id, least + 1, least];
    }
  }
  return counters;
}

test("the counters of frequent ids distinguish ids with equal hashes", () => {
  const hash = fc.constantFrom<(id: string) => number>(
    hashOf,
    ({ length }) => 255 - length,
    () => -1,
  );
  fc.assert(
    fc.property(ids, hash, (sent, chosen) => {
      const hot = new HotIds();
      for (const id of sent) hot.add(id, chosen(id));
      expect(hot.counters()).toEqual(plainCounters(sent));
    }),
  );
});

test("the counters find every id with more than 1/64 of the events", () => {
  fc.assert(
    fc.property(ids, (sent) => {
      const hot = new HotIds();
      const counts = new Map<string, number>();
      for (const id of sent) {
        hot.add(id, hashOf(id));
        counts.set(id, (counts.get(id) ?? 0) + 1);
      }
      for (const [id, least] of hot.over(0)) expect(least).toBeLessThanOrEqual(counts.get(id) ?? 0);
      const counters = hot.counters();
      expect(counters.length).toBeLessThanOrEqual(64);
      const remembered = new Map(counters.map(([id, count]) => [id, count]));
      for (const [id, count] of counts) {
        if (count > sent.length / 64) expect(remembered.get(id)).toBeGreaterThanOrEqual(count);
      }
      expect(counters.reduce((sum, [, count]) => sum + count, 0)).toBe(sent.length);
    }),
  );
});

test("the counters give the same results after they are loaded again", () => {
  fc.assert(
    fc.property(ids, fc.array(fc.nat(2_000)), (sent, stops) => {
      const whole = new HotIds();
      let stopped = new HotIds();
      for (const [at, id] of sent.entries()) {
        whole.add(id, hashOf(id));
        stopped.add(id, hashOf(id));
        if (stops.includes(at)) stopped = new HotIds(stopped.counters());
      }
      expect(stopped.counters()).toEqual(whole.counters());
    }),
  );
});
