// What is placed in one turn of the event loop is bounded, whatever bodies hold and however many come at once: nobody waits longer than
// that for a turn. Counted in events placed, so that it holds on any machine.

import { expect, test } from "vitest";
import { LoopShare } from "../../src/intake/loop-share.ts";
import { IntakeKit } from "./intake-kit.ts";

/** Two slices, and one that begins below the bound. */
const eventsOfSlicesMax = 1_600;

function tinyEvents(project: string, bytes: number): Buffer {
  const event = '{"event":"e","distinct_id":1},';
  return Buffer.from(`{"api_key":"key_${project}","batch":[${event.repeat(bytes / event.length)}1]}`);
}

test.each([
  ["a body below a mebibyte whose events are tiny", 1_000_000],
  ["a body whose events are tiny and whose bytes are few", 60_000],
  ["a body of some mebibytes", 4_000_000],
])("%s is placed in many turns", async (_, bytes) => {
  const kit = new IntakeKit();
  const sent = kit.send(tinyEvents("a", bytes));
  await sent.work;
  expect(sent.answer).toBe(`stored ${Math.floor(bytes / 30)}`);
  expect(Math.max(...kit.eventsOfTurns)).toBeLessThanOrEqual(eventsOfSlicesMax);
  expect(kit.eventsOfTurns.length).toBeGreaterThan(1);
});

test("large bodies of many projects share one bound", async () => {
  const kit = new IntakeKit();
  const all = [..."abcdabcd"].map((project) => kit.send(tinyEvents(project, 300_000)));
  await Promise.all(all.map(({ work }) => work));
  expect(all.map(({ answer }) => answer)).toEqual(all.map(() => "stored 10000"));
  expect(Math.max(...kit.eventsOfTurns)).toBeLessThanOrEqual(eventsOfSlicesMax);
});

test("many bodies that each go through at once do not all go through in one turn", async () => {
  const kit = new IntakeKit();
  const batches = Array.from({ length: 300 }, (_, index) => ({
    name: `n${"ab"[index % 2]}`,
    project: "ab"[index % 2]!,
  }));
  const all = batches.map((batch) => kit.send({ ...batch, events: 300, padding: 200 }));
  await Promise.all(all.map(({ work }) => work));
  expect(all.every(({ answer }) => answer === "stored 300")).toBe(true);
  // 32 MiB of work, of which a batch like these is 0.8.
  expect(Math.max(...kit.eventsOfTurns)).toBeLessThanOrEqual(64 * 300);
});

test("a single event is placed at once, however much others sent in the same turn", async () => {
  const kit = new IntakeKit();
  const others = Array.from({ length: 200 }, () =>
    kit.send({ name: "other", project: "a", events: 300, padding: 200 }),
  );
  expect(others.at(-1)!.answer).toBeUndefined();
  const single = kit.send({ name: "single", project: "b", events: 1 });
  expect(single.answer).toBe("stored 1");
  await Promise.all(others.map(({ work }) => work));
});

test("a batch of a hundred usual events is placed at once", () => {
  const kit = new IntakeKit();
  expect(kit.send({ name: "n", project: "a", events: 100, padding: 300 }).answer).toBe("stored 100");
});

test("slices run in the order of asking, at least one a turn, and a slice that throws ends nobody else's", async () => {
  const turns: (() => void)[] = [];
  const share = new LoopShare(() => new Promise((resolve) => turns.push(resolve)));
  const done: string[] = [];
  const ask = (name: string, work: number) => share.slice(() => done.push(name) && work);
  const bug = share.slice(() => {
    throw new Error("a bug");
  });
  const asked = [ask("a", 400_000), ask("b", 700_000), ask("c", 5_000_000), ask("d", 1)];
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
