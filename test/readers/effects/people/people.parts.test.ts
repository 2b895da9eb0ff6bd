import { expect, test } from "vitest";
import { People, type PeopleChanges } from "../../../../src/readers/effects/people/people.ts";
import type { RejectedRow } from "../../../../src/readers/effects/types.ts";
import { changesOf, effectOf, frameOf, projectId, Rows } from "./rows.ts";

const plainIds = 40;
const links = 20;
const rowsAPart = 32;

function queue(people: People): void {
  for (let id = 0; id < plainIds; id++)
    for (const timeMs of [9_000 + id, 5_000 + id]) {
      const effect = effectOf({ timeMs, distinctId: `id-${id}`, place: { sequence: timeMs } });
      const plain = { projectId, distinctId: `id-${id}`, timeMs };
      people.touch({ frame: frameOf(effect), line: 0, ...plain });
    }
  for (let id = 0; id < links; id++) {
    const link = { kind: "identify", from: `anonymous-${id}`, to: `id-${id}` } as const;
    const rejections = [{ reason: "too_deep", detail: `of ${id}` }] as const;
    const place = { sequence: 20_000 + id };
    people.add(effectOf({ timeMs: 7_000, distinctId: `id-${id}`, link, rejections, place }));
    if (id === 10) people.reject(unreadable);
  }
}

const unreadable: RejectedRow = {
  projectId,
  eventUuid: "",
  distinctId: undefined,
  atMs: 1,
  reason: "not_json",
  detail: "of a line",
  place: effectOf({ timeMs: 0 }).place,
};

function applied(people: People): PeopleChanges {
  people.adopt(new Rows().read(people.missing()));
  people.apply();
  return changesOf(people);
}

test("queued rows are written in small steps", () => {
  const whole = new People();
  queue(whole);
  const expected = applied(whole);

  const people = new People();
  queue(people);
  const parts = people.takeParts();
  expect(people.queued).toBe(0);
  expect(people.missing()).toBeUndefined();
  expect(parts.length).toBeGreaterThan((plainIds + links) / rowsAPart);
  for (const part of parts) {
    part();
    const missing = people.missing();
    expect(missing?.members.get(projectId)?.length ?? 0).toBeLessThanOrEqual(rowsAPart);
    if (missing !== undefined) people.adopt(new Rows().read(missing));
    expect(people.apply()).toBe(true);
  }
  expect(changesOf(people)).toEqual(expected);
});

test("an unreadable line keeps its position among other rejections", () => {
  const people = new People();
  queue(people);
  const details = applied(people).rejected.map(({ detail }) => detail);
  expect(details.slice(9, 13)).toEqual(["of 9", "of 10", "of a line", "of 11"]);
});
