import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { StoredLine } from "../../../../src/readers/effects/lines/line.ts";
import { Spikes } from "../../../../src/readers/effects/spikes/spikes.ts";
import { storedFrame, storedLine } from "../line-kit.ts";

const minuteMs = 60_000;
const startMs = Date.UTC(2026, 10, 22);

interface Burst {
  readonly projectId: string;
  readonly partition: number;
  readonly ms: number;
  readonly events: number;
  readonly distinctId: string;
  readonly isDuplicate: boolean;
}

class Kept {
  readonly spikes = new Map<string, unknown>();
  readonly activity = new Map<string, string>();
  readonly outbox = new Map<string, unknown>();

  load(spikes: Spikes): void {
    for (let ids = spikes.missing(); ids.length > 0; ids = spikes.missing())
      spikes.adopt(
        ids.flatMap((projectId) => {
          const state = this.activity.get(projectId);
          return state === undefined ? [] : [{ projectId, state }];
        }),
      );
  }

  endBatch(spikes: Spikes): ReturnType<Spikes["changes"]> {
    this.load(spikes);
    spikes.apply();
    return spikes.changes();
  }

  commit({ spikes, activity, outbox }: ReturnType<Spikes["changes"]>): void {
    for (const row of spikes)
      this.spikes.set(`${row.projectId} ${row.subject} ${row.startedAtMs}`, row);
    for (const { projectId, state } of activity) this.activity.set(projectId, state);
    for (const row of outbox) {
      expect(this.outbox.has(row.messageId)).toBe(false);
      this.outbox.set(row.messageId, row);
    }
  }

  /** Whether the empty list of projects in motion is stored depends on the batches. */
  dump(): unknown {
    const activity = [...this.activity].filter((row) => row.join(" ") !== "~ []");
    return [[...this.spikes], activity, [...this.outbox]].map((rows) => rows.sort());
  }
}

class Feed {
  readonly #bursts: readonly Burst[];
  readonly #watermarks: number[] = [];
  readonly #lines = new Map<number, StoredLine>();

  constructor(bursts: readonly Burst[]) {
    this.#bursts = bursts;
    const newest = new Map<number, number>();
    for (const { partition, ms } of bursts) {
      newest.set(partition, Math.max(newest.get(partition) ?? 0, ms));
      this.#watermarks.push(newest.get(partition) ?? 0);
    }
  }

  count(spikes: Spikes, at: number, { from, to }: { from: number; to: number }): void {
    const burst = this.#bursts[at]!;
    let line = this.#lines.get(at);
    if (line === undefined) {
      const { projectId, partition, ms: receivedAtMs, distinctId } = burst;
      line = storedLine({ frame: storedFrame({ partition }), projectId, receivedAtMs, distinctId });
      this.#lines.set(at, line);
    }
    for (let event = from; event < to; event++)
      spikes.count(line, burst.isDuplicate, this.#watermarks[at]!);
  }
}

function burst(wanted: Partial<Burst>): Burst {
  const other = { partition: 0, ms: startMs, events: 1, distinctId: "someone", isDuplicate: false };
  return { projectId: "p", ...other, ...wanted };
}

function keptOf(bursts: readonly Burst[]): Kept {
  const kept = new Kept();
  const spikes = new Spikes({ prefix: "penstock" });
  const feed = new Feed(bursts);
  for (const [at, { events }] of bursts.entries()) feed.count(spikes, at, { from: 0, to: events });
  kept.commit(kept.endBatch(spikes));
  return kept;
}

const at = (minute: number, more: Partial<Burst> = {}) =>
  burst({ ms: startMs + minute * minuteMs, ...more });
const twoMinutesAbove = [at(0), at(60, { events: 800 }), at(61, { events: 900 })];

describe("a spike", () => {
  test("is reported ten seconds after the end of its second minute", () => {
    const end = startMs + 62 * minuteMs;
    expect(keptOf([...twoMinutesAbove, burst({ ms: end + 9_999 })]).spikes.size).toBe(0);
    const kept = keptOf([...twoMinutesAbove, burst({ ms: end + 10_000 })]);
    const startedAtMs = startMs + 60 * minuteMs;
    expect([...kept.spikes.values()]).toMatchObject([
      { projectId: "p", subject: "project", startedAtMs, endedAtMs: undefined, events: 1_700 },
    ]);
    const [announced] = kept.outbox.values() as Iterable<Record<string, string>>;
    expect(announced).toMatchObject({
      messageId: `spike/p/project/${startedAtMs}/began`,
      subject: "penstock.spike.p",
    });
    expect(JSON.parse(announced!["json"]!)).toMatchObject({
      project: "p",
      change: "began",
      started_at: "2026-11-22T01:00:00.000Z",
      ended_at: null,
      peak_per_minute: 900,
    });
  });

  test("ends with the next events of the partition if the project stops sending", () => {
    const elsewhere = at(90, { projectId: "q", partition: 1 });
    expect(keptOf([...twoMinutesAbove, elsewhere]).spikes.size).toBe(0);
    const same = keptOf([...twoMinutesAbove, at(90, { projectId: "q", isDuplicate: true })]);
    expect([...same.spikes.values()]).toMatchObject([{ endedAtMs: startMs + 62 * minuteMs }]);
    expect(same.outbox.size).toBe(2);
  });

  test("does not begin because of duplicates", () => {
    const twice = [at(0), ...[60, 61, 80].map((m) => at(m, { events: 800, isDuplicate: true }))];
    expect(keptOf(twice).spikes.size).toBe(0);
  });

  test("does not begin because of imported events", () => {
    const spikes = new Spikes({ prefix: "penstock" });
    const frame = storedFrame({ lane: "historical" });
    for (const minute of [0, 60, 61, 80]) {
      const line = storedLine({ frame, receivedAtMs: startMs + minute * minuteMs });
      for (let event = 0; event < 900; event++) spikes.count(line, false, line.receivedAtMs);
    }
    expect(new Kept().endBatch(spikes)).toEqual({ activity: [], spikes: [], outbox: [] });
  });
});

test("spikes of a project in two partitions do not depend on batch boundaries", () => {
  const hot = { projectId: "x", distinctId: "hot" };
  const bursts = [
    at(0, { projectId: "z" }),
    at(0, { ...hot, partition: 1, events: 6_400 }),
    at(5, { projectId: "y", partition: 1 }),
    at(0, { ...hot, events: 400 }),
    at(9, { projectId: "y", partition: 1 }),
    at(10, { ...hot, partition: 1 }),
    at(20, { projectId: "y", partition: 1 }),
  ];
  const kept = new Kept();
  const spikes = new Spikes({ prefix: "penstock" });
  const feed = new Feed(bursts);
  for (const [index, { events }] of bursts.entries()) {
    feed.count(spikes, index, { from: 0, to: events });
    kept.commit(kept.endBatch(spikes));
    spikes.committed();
  }
  expect(kept.dump()).toEqual(keptOf(bursts).dump());
});

test("events from a clock that is a year ahead count at the time of storage", () => {
  const spikes = new Spikes({ prefix: "penstock" });
  for (const minute of [0, 60, 61, 70]) {
    const storedAtMs = startMs + minute * minuteMs;
    const ahead = storedAtMs + 365 * 24 * 60 * minuteMs;
    const line = storedLine({ frame: storedFrame({ storedAtMs }), receivedAtMs: ahead });
    for (let event = 0; event < 900; event++) spikes.count(line, false, storedAtMs);
  }
  const startedAtMs = startMs + 60 * minuteMs;
  expect(new Kept().endBatch(spikes).spikes).toMatchObject([{ startedAtMs }]);
});

test("spikes are not computed before their rows are read", () => {
  const spikes = new Spikes({ prefix: "penstock" });
  spikes.count(storedLine(), false, startMs);
  expect(() => spikes.apply()).toThrow("have not been read");
});

test("spikes do not depend on batches, failed commits, restarts or the cache", () => {
  const projects = ["p", "q", "r", "s"];
  const bursts = fc.array(
    fc.record({
      project: fc.nat(3),
      afterMs: fc.integer({ min: -20_000, max: 80_000 }),
      events: fc.oneof(fc.nat(5), fc.integer({ min: 400, max: 1_500 }), fc.constant(7_000)),
      distinctId: fc.constantFrom("a", "b", "project"),
      isDuplicate: fc.nat(9).map((one) => one === 0),
      // While the number of partitions changes, a project's events are in two partitions.
      isElsewhere: fc.nat(4).map((one) => one === 0),
      cut: fc.nat(1_000),
      next: fc.constantFrom("nothing", "nothing", "commit", "commit", "discard", "restart"),
    }),
    { minLength: 10, maxLength: 60 },
  );
  let found = 0;
  fc.assert(
    fc.property(bursts, (wanted) => {
      let ms = startMs + 61 * minuteMs;
      const stored: { one: Burst; cut: number; next: string }[] = wanted.map(
        ({ project, afterMs, isElsewhere, cut, next, ...rest }) => {
          ms += afterMs;
          const partition = (project + Number(isElsewhere)) % 2;
          const one = { projectId: projects[project]!, partition, ms, ...rest };
          return { one, cut: Math.floor((rest.events * cut) / 1_000), next };
        },
      );
      for (const [project, projectId] of projects.entries())
        stored.unshift({
          one: burst({ projectId, partition: project % 2 }),
          cut: 0,
          next: "nothing",
        });
      const all = stored.map(({ one }) => one);
      const undisturbed = keptOf(all);
      found += undisturbed.spikes.size;

      const feed = new Feed(all);
      const kept = new Kept();
      const options = { prefix: "penstock", projectsMax: 2 };
      let spikes = new Spikes(options);
      let place = { burst: 0, from: 0 };
      let committed = place;
      let inFlight: { changes: ReturnType<Spikes["changes"]>; place: typeof place } | undefined;
      const settle = () => {
        if (inFlight === undefined) return;
        kept.commit(inFlight.changes);
        spikes.committed();
        committed = inFlight.place;
        inFlight = undefined;
      };
      while (place.burst < stored.length) {
        const here = stored[place.burst]!;
        const to = place.from === 0 && here.cut > 0 ? here.cut : here.one.events;
        feed.count(spikes, place.burst, { from: place.from, to });
        const isWhole = to === here.one.events;
        place = isWhole ? { burst: place.burst + 1, from: 0 } : { burst: place.burst, from: to };
        if (here.next === "commit") {
          kept.load(spikes);
          settle();
          inFlight = { changes: kept.endBatch(spikes), place };
        } else if (here.next !== "nothing") {
          if (here.next === "discard") spikes.discard();
          else spikes = new Spikes(options);
          inFlight = undefined;
          place = committed;
          here.next = "nothing";
        }
      }
      settle();
      kept.commit(kept.endBatch(spikes));
      expect(kept.dump()).toEqual(undisturbed.dump());
    }),
    { numRuns: 20 },
  );
  expect(found).toBeGreaterThan(8);
});
