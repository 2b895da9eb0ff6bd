import { expect, test } from "vitest";
import { SeenEvents } from "../../../../src/readers/sinks/parquet/seen-events.ts";

const uuidOf = (index: number): string =>
  `0190aaaa-bbbb-7ccc-8ddd-${index.toString(16).padStart(12, "0")}`;
const inProject = (uuid: string, projectId = "shop", event = "e", distinctId = "u") => ({
  uuid,
  projectId,
  event,
  distinctId,
});

test("an event counts as seen only for the same project and uuid", () => {
  const seen = new SeenEvents();
  const first = "00000000-0000-4000-8000-000000000000";
  expect(seen.add(inProject(first))).toBe(true);
  expect(seen.add(inProject(first))).toBe(false);
  expect(seen.add(inProject(first, "blog"))).toBe(true);
  for (const [index, digit] of [...first].entries()) {
    if (digit === "-") continue;
    const other = `${first.slice(0, index)}f${first.slice(index + 1)}`;
    expect(seen.add(inProject(other))).toBe(true);
    expect(seen.add(inProject(other))).toBe(false);
  }
});

test("two different events with the same uuid count as two events", () => {
  const seen = new SeenEvents();
  const names = ["", "a", "b", "ab", "ä", "aa"];
  const all = names.flatMap((event) => names.map((id) => inProject(uuidOf(1), "shop", event, id)));
  expect(all.map((event) => seen.add(event))).toEqual(all.map(() => true));
  expect(all.map((event) => seen.add(event))).toEqual(all.map(() => false));
});

test("between one and two million events are remembered", () => {
  const seen = new SeenEvents();
  const million = 2 ** 20;
  let count = 0;
  for (let index = 0; index < 2 * million; index++) if (seen.add(inProject(uuidOf(index)))) count++;
  expect(count).toBe(2 * million);
  expect(seen.add(inProject(uuidOf(million)))).toBe(false);
  expect(seen.add(inProject(uuidOf(0)))).toBe(true);
});

test("forgotten events count as new", () => {
  const seen = new SeenEvents();
  seen.add(inProject(uuidOf(1)));
  seen.forget();
  expect(seen.add(inProject(uuidOf(1)))).toBe(true);
});
