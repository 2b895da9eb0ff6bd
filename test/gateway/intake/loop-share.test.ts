// The test's clock counts work: 2 µs per published event and 6 ns per scanned byte. So the result
// does not depend on the machine's speed.

import { beforeEach, describe, expect, test } from "vitest";
import { LoopShare } from "../../../src/gateway/intake/loop-share.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { IntakeKit, until } from "./intake-kit.ts";

const eventsOfSlicesMax = 1_000;

let kit: IntakeKit;

beforeEach(() => {
  let now = 0;
  kit = new IntakeKit({
    createScanner(rows) {
      const scanner = createNativeScanner(rows);
      const scanAtOnce = (body: Buffer) => {
        now += body.length * 6e-6;
        return scanner.scanAtOnce(body);
      };
      const normalise: typeof scanner.normalise = (body, start, end, target, at) => {
        now += (end - start) * 6e-6;
        return scanner.normalise(body, start, end, target, at);
      };
      return { ...scanner, scanAtOnce, normalise };
    },
  });
  kit.monotonicMs = () => now;
  kit.onEvent = () => {
    now += 0.002;
  };
});

function tinyEvents(project: string, bytes: number): Buffer {
  const event = '{"event":"e","distinct_id":1},';
  return Buffer.from(
    `{"api_key":"key_${project}","batch":[${event.repeat(bytes / event.length)}1]}`,
  );
}

describe("one turn of the event loop", () => {
  test.each([
    ["a body of 1 MB with tiny events", 1_000_000],
    ["a body of 60 kB with tiny events", 60_000],
    ["a body of 4 MB with tiny events", 4_000_000],
  ])("publishes only a part of %s", async (_, bytes) => {
    const sent = kit.send(tinyEvents("a", bytes));
    await sent.work;
    expect(sent.answer).toBe(`stored ${Math.floor(bytes / 30)}`);
    expect(Math.max(...kit.eventsOfTurns)).toBeLessThanOrEqual(eventsOfSlicesMax);
    expect(kit.eventsOfTurns.length).toBeGreaterThan(1);
  });

  test("has one limit for the large bodies of all projects", async () => {
    const all = [..."abcdabcd"].map((project) => kit.send(tinyEvents(project, 300_000)));
    await Promise.all(all.map(({ work }) => work));
    expect(all.map(({ answer }) => answer)).toEqual(all.map(() => "stored 10000"));
    expect(Math.max(...kit.eventsOfTurns)).toBeLessThanOrEqual(eventsOfSlicesMax);
  });

  test("publishes only some of many small bodies", async () => {
    const batches = Array.from({ length: 100 }, (_, index) => ({
      name: `n${"ab"[index % 2]}`,
      project: "ab"[index % 2]!,
    }));
    const all = batches.map((batch) => kit.send({ ...batch, events: 300, padding: 200 }));
    await Promise.all(all.map(({ work }) => work));
    expect(all.every(({ answer }) => answer === "stored 300")).toBe(true);
    await until(() => kit.eventsOfTurns.reduce((sum, events) => sum + events, 0) === 30_000);
    // The events of 8 ms of immediate work, and the events of the slices in the same turn.
    expect(Math.max(...kit.eventsOfTurns)).toBeLessThanOrEqual(4_000 + 300 + eventsOfSlicesMax);
  });

  test.each([
    ["brackets", () => `{"x":${"[".repeat(60_000)}`],
    [
      "numbers in an item that must be normalised",
      () => {
        const numbers = "1e1,".repeat(14_000);
        return `{"api_key":"key_a","event":"e","distinct_id":1,"properties":{"alias":1,"alias":1,"x":[${numbers}1]}}`;
      },
    ],
  ])("scans only some of many bodies of %s", async (_, text) => {
    let turns = 0;
    const count = (): void => {
      turns++;
      if (left > 0) setImmediate(count);
    };
    let left = 100;
    setImmediate(count);
    const all = Array.from({ length: left }, () => kit.send(Buffer.from(text())));
    const atOnce = all.filter(({ answer }) => answer !== undefined).length;
    await Promise.all(all.map(({ work }) => work));
    left = 0;
    expect(all.every(({ answer }) => answer !== undefined)).toBe(true);
    // Each body takes at least 0.33 ms, and a turn has 8 ms.
    expect(atOnce).toBeLessThanOrEqual(25);
    expect(turns).toBeGreaterThan(1);
  });

  test("leaves the JSON error of a long body to a later turn", async () => {
    const bodies = [`{"x":${"[".repeat(9_000)}`, `{"x":${"[".repeat(4_000)}`];
    const [long, short] = bodies.map((body) => kit.send(Buffer.from(body)));
    expect([long?.answer, short?.answer]).toEqual([undefined, "invalid_json"]);
    await long?.work;
    expect(long?.answer).toBe("invalid_json");
  });

  test("publishes only some of many 2 kB bodies with many events", async () => {
    const all = Array.from({ length: 300 }, (_, index) =>
      kit.send(tinyEvents("ab"[index % 2]!, 2_000)),
    );
    await Promise.all(all.map(({ work }) => work));
    expect(all.every(({ answer }) => answer === "stored 66")).toBe(true);
    await until(() => kit.eventsOfTurns.reduce((sum, events) => sum + events, 0) === 300 * 66);
    expect(Math.max(...kit.eventsOfTurns)).toBeLessThanOrEqual(4_000 + 66 + eventsOfSlicesMax);
  });

  test.each([
    ["that are merged", "$set", 1, 7],
    ["that are copied", "x", 9, 12],
  ])(
    "processes only some of many bodies full of person fields %s",
    async (_, name, least, most) => {
      const fields = JSON.stringify(
        Object.fromEntries(Array.from({ length: 5_000 }, (__, at) => [`n${at}`, at])),
      );
      const text = `{"api_key":"key_a","event":"e","distinct_id":1,"${name}":${fields},"properties":{"$set":${fields}}}`;
      const all = Array.from({ length: 40 }, () => kit.send(Buffer.from(text)));
      const atOnce = all.filter(({ answer }) => answer !== undefined).length;
      await Promise.all(all.map(({ work }) => work));
      expect(all.every(({ answer }) => answer === "stored 1")).toBe(true);
      expect(atOnce).toBeGreaterThanOrEqual(least);
      expect(atOnce).toBeLessThanOrEqual(most);
    },
  );

  test("publishes a single event even if other bodies have used up the turn", async () => {
    const others = Array.from({ length: 60 }, () =>
      kit.send({ name: "other", project: "a", events: 300, padding: 200 }),
    );
    expect(others.at(-1)!.answer).toBeUndefined();
    const single = kit.send({ name: "single", project: "b", events: 1 });
    expect(single.answer).toBe("stored 1");
    await Promise.all(others.map(({ work }) => work));
  });

  test("publishes a batch of 100 ordinary events immediately", () => {
    expect(kit.send({ name: "n", project: "a", events: 100, padding: 300 }).answer).toBe(
      "stored 100",
    );
  });

  test("runs at least one slice", async () => {
    let now = 0;
    const turns: (() => void)[] = [];
    const share = new LoopShare({
      nextTurn: () => new Promise<void>((resolve) => turns.push(resolve)),
      monotonicMs: () => now,
    });
    const done: string[] = [];
    const ask = (name: string, ms: number) =>
      share.slice(() => {
        done.push(name);
        now += ms;
      });
    const bug = share.slice(() => {
      throw new Error("a bug");
    });
    const asked = [ask("a", 0.3), ask("b", 0.7), ask("c", 5), ask("d", 0.1)];
    await expect(Promise.race([bug, nextTurn()])).rejects.toThrow("a bug");
    expect(done).toEqual(["a", "b"]);
    await nextTurn();
    expect(done).toEqual(["a", "b", "c"]);
    await nextTurn();
    await Promise.all(asked);
    expect(done).toEqual(["a", "b", "c", "d"]);
    expect(turns).toEqual([]);

    async function nextTurn(): Promise<void> {
      turns.shift()!();
      await Promise.resolve();
      await Promise.resolve();
    }
  });
});
