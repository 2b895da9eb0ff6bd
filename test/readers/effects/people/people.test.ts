import { describe, expect, test } from "vitest";
import { People } from "../../../../src/readers/effects/people/people.ts";
import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import type { LinkKind } from "../../../../src/readers/effects/types.ts";
import {
  applyAll,
  applyBatch,
  effectOf,
  projectId,
  Rows,
  type Step,
  seenLine,
  valuesOf,
} from "./rows.ts";

const hourMs = 3_600_000;

function world(options: ConstructorParameters<typeof People>[0] = {}) {
  const [people, rows] = [new People(options), new Rows()];
  let sequence = 0;
  const run = (...steps: Step[]) =>
    applyAll(
      people,
      rows,
      steps.map((step) => ({ ...step, place: { sequence: ++sequence, ...step.place } })),
    );
  return { people, rows, run };
}

function link(kind: LinkKind, from: string, to: string, timeMs = 1): Step {
  return { timeMs, distinctId: kind === "identify" ? to : from, link: { kind, from, to } };
}

describe("an event of an unknown distinct id", () => {
  test("creates a person with the uuid of the distinct id", () => {
    const { rows, run } = world();
    run({ timeMs: 2 * hourMs + 5, distinctId: "a" });
    const uuid = personUuid(projectId, "a");
    const first = { timeMs: 2 * hourMs + 5, rank: expect.stringMatching(/^l/) };
    expect(rows.members.get("a")).toMatchObject({ uuid, first, mergedInto: undefined });
    expect(rows.members.get("a")?.person).toMatchObject({
      firstId: "a",
      firstUuid: uuid,
      mainId: "a",
      mainStamp: undefined,
      known: false,
      createdAtMs: 2 * hourMs + 5,
      lastSeenAtMs: 2 * hourMs,
      idsTotal: 1,
      version: 1,
    });
  });

  test("changes nothing if a second event follows in the same hour", () => {
    const { people, rows, run } = world();
    run({ timeMs: 10, distinctId: "a" });
    expect(people.seen(seenLine(projectId, "a", 11))).toBe(true);
    expect(people.seen(seenLine(projectId, "a", 9))).toBe(false);
    expect(people.seen(seenLine(projectId, "a", hourMs))).toBe(false);
    expect(people.seen(seenLine(projectId, "b", 11))).toBe(false);
    expect(people.seen(seenLine("other", "a", 11))).toBe(false);
    const again = effectOf({ timeMs: 11, distinctId: "a", person: {} });
    expect(applyBatch(people, rows, [again]).members).toEqual([]);
  });
});

describe("a link", () => {
  test.each(["identify", "alias", "merge"] as const)("merges two persons into one: %s", (kind) => {
    const { rows, run } = world();
    run({ timeMs: 1, distinctId: "anon" }, { timeMs: 2, distinctId: "user" });
    const changes = run(link(kind, "anon", "user", 3));
    expect(changes.links).toMatchObject([
      { a: "anon", b: "user", kind, atMs: 3, outcome: "merged" },
    ]);
    const root = rows.personOf("anon");
    expect(root).toBe(rows.personOf("user"));
    expect(root?.person).toMatchObject({
      firstId: "anon",
      firstUuid: personUuid(projectId, "anon"),
      mainId: "user",
      idsTotal: 2,
      known: kind === "identify",
    });
    expect(run(link(kind, "anon", "user", 4)).links).toMatchObject([{ outcome: "already_one" }]);
  });

  test("creates the event's own id before the other id", () => {
    const { rows, run } = world();
    run(link("identify", "x", "y"), link("alias", "v", "w"));
    expect(rows.personOf("x")?.person).toMatchObject({ firstId: "y", mainId: "y" });
    expect(rows.personOf("w")?.person).toMatchObject({ firstId: "v", mainId: "w" });
  });

  test("merges two known persons only if it is a $merge_dangerously", () => {
    const { rows, run } = world();
    run(link("identify", "anon1", "one"), link("identify", "anon2", "two"));
    expect(run(link("identify", "one", "two")).links[0]?.outcome).toBe("refused_both_known");
    expect(run(link("alias", "one", "two")).links[0]?.outcome).toBe("refused_both_known");
    expect(rows.personOf("one")).not.toBe(rows.personOf("two"));
    expect(run(link("merge", "one", "two")).links[0]?.outcome).toBe("merged");
    expect(rows.personOf("anon1")?.person).toMatchObject({ idsTotal: 4, mainId: "two" });
  });

  test("makes the target of a refused identify known", () => {
    const { rows, run } = world();
    run(link("identify", "anon", "one"));
    expect(run(link("identify", "one", "new")).links[0]?.outcome).toBe("refused_both_known");
    expect(rows.personOf("new")?.person?.known).toBe(true);
    run(link("identify", "self", "self"), link("identify", "guest", "user"));
    expect(rows.personOf("self")?.person?.known).toBe(true);
    expect(rows.personOf("user")?.person?.known).toBe(false);
  });

  test.each([
    ..."anonymous Guest DISTINCTID distinct_id id not_authenticated email Undefined true FALSE".split(
      " ",
    ),
    ..."NaN None none null 0 $posthog_cookieless".split(" "),
    "[object Object]",
    "",
    "  ",
    "\t",
    '""',
    "''",
    '"null"',
    "'Anonymous'",
    "`null`",
    "NULL",
    "<nil>",
    "-1",
    "N/A",
    "00000000-0000-0000-0000-000000000000",
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "a\0b",
    "a\ufffd",
    " id ",
  ])("of the illegal id %j neither merges nor creates a person", (illegal) => {
    const { rows, run } = world();
    const changes = run(link("identify", illegal, "user"), link("alias", "user", illegal));
    expect(changes.links.map(({ outcome }) => outcome)).toEqual(
      Array(2).fill("refused_illegal_id"),
    );
    expect([...rows.members.keys()]).toEqual(["user"]);
  });

  test.each(["person2", "-2", "00", "ids", '"', "'user\"", "person"])(
    "of the id %j merges and creates persons",
    (id) => {
      expect(world().run(link("identify", id, "user")).links[0]?.outcome).toBe("merged");
    },
  );

  test("is refused above the maximum of ids", () => {
    const { rows, run } = world({ idsMax: 3 });
    const outcomes = run(
      link("alias", "a", "b"),
      link("alias", "a", "c"),
      link("alias", "a", "d"),
      link("alias", "b", "c"),
      link("alias", "guest", "guest"),
      link("merge", "a", "a"),
    ).links.map(({ outcome }) => outcome);
    expect(outcomes).toEqual([
      "merged",
      "merged",
      "refused_cap",
      "already_one",
      "refused_illegal_id",
      "refused_self",
    ]);
    expect(rows.members.has("d")).toBe(false);
  });

  test("that is refused does not block the other effects of its event", () => {
    const { rows, run } = world();
    run({ ...link("alias", "a", "id"), person: { set: [["plan", '"pro"']] } });
    expect(valuesOf(rows.personOf("a")?.person)).toEqual({ plan: '"pro"' });
  });
});

describe("properties", () => {
  test("follow the newest $set, the oldest $set_once and the newest $unset", () => {
    const { rows, run } = world();
    const shown = () => valuesOf(rows.personOf("a")?.person);
    run({ timeMs: 20, distinctId: "a", person: { set: [["x", "20"]], once: [["y", "20"]] } });
    run({ timeMs: 10, distinctId: "a", person: { set: [["x", "10"]], once: [["y", "10"]] } });
    expect(shown()).toEqual({ x: "20", y: "10" });
    run({ timeMs: 30, distinctId: "a", person: { unset: ["x"] } });
    run({ timeMs: 25, distinctId: "a", person: { set: [["x", "25"]] } });
    expect(shown()).toEqual({ y: "10" });
    run({ timeMs: 31, distinctId: "a", person: { once: [["x", "31"]] } });
    expect(shown()).toEqual({ x: "31", y: "10" });
  });

  test("of one event are changed by $set_once, then $set, then $unset", () => {
    const { rows, run } = world();
    const writes: Step["person"] = {
      once: [
        ["x", "1"],
        ["y", "1"],
        ["z", "1"],
      ],
      set: [
        ["y", "2"],
        ["z", "2"],
      ],
      unset: ["z"],
    };
    run({ timeMs: 1, distinctId: "a", person: writes });
    expect(valuesOf(rows.personOf("a")?.person)).toEqual({ x: "1", y: "2" });
  });

  test("of two merged persons are merged name by name", () => {
    const { rows, run } = world();
    run({
      timeMs: 5,
      distinctId: "a",
      person: {
        set: [
          ["x", "5"],
          ["only", "1"],
        ],
      },
    });
    run({
      timeMs: 6,
      distinctId: "b",
      person: {
        set: [
          ["x", "6"],
          ["__proto__", "1.0"],
        ],
      },
    });
    run(link("alias", "b", "a", 7));
    const shown = valuesOf(rows.personOf("a")?.person);
    expect(Object.entries(shown).sort()).toEqual([
      ["__proto__", "1.0"],
      ["only", "1"],
      ["x", "6"],
    ]);
  });

  test("above the size limit are rejected by name", () => {
    const { rows, run } = world({ propertyBytesMax: 500 });
    const set = [
      ["a", "1"],
      ["long", `"${"x".repeat(300)}"`],
      ["b", "2"],
    ] as const;
    const changes = run({ timeMs: 1, distinctId: "a", person: { set } });
    expect(valuesOf(rows.personOf("a")?.person)).toEqual({ a: "1", b: "2" });
    expect(changes.rejected).toMatchObject([
      { reason: "person_full", atMs: 1, detail: "no room in the person for long" },
    ]);
    expect(rows.personOf("a")?.person?.propertyBytes).toBe(2 * (160 + 2));
  });
});

describe("groups", () => {
  const group = (type: string, key: string, plan: string, timeMs: number): Step => {
    const set = { once: [], set: [["plan", plan] as const], unset: [] };
    return { timeMs, group: { type, key, set } };
  };

  test("are created only by group identify", () => {
    const { rows, run } = world();
    run(group("company", "acme", "1", 5), group("company", "acme", "2", 4));
    expect([...rows.groups.values()]).toMatchObject([{ createdAtMs: 4, updatedAtMs: 5 }]);
    expect([...rows.groupTypes]).toEqual(["company"]);
    expect(rows.members.size).toBe(0);
  });

  test("have as members the ids that were seen with the group", () => {
    const { rows, run } = world();
    const memberOf = [{ type: "company", key: "acme" }];
    run({ timeMs: 5, distinctId: "a", memberOf });
    run({ timeMs: 3, distinctId: "a", memberOf });
    expect(run({ timeMs: 4, distinctId: "a", memberOf }).groupMembers).toEqual([]);
    expect([...rows.groupMembers]).toEqual([["company/acme/a", 3]]);
    expect(rows.groups.size + rows.groupTypes.size).toBe(0);
  });

  test("above the maximum of group types are rejected by name", () => {
    const { rows, run } = world({ groupTypesMax: 1 });
    run(group("company", "acme", "1", 1));
    const changes = run(group("team", "red", "1", 1), group("company", "other", "1", 1));
    expect(changes.rejected).toMatchObject([
      { reason: "too_many_group_types", detail: "more than 1 group types: team" },
    ]);
    expect([...rows.groups.keys()]).toEqual(["company/acme", "company/other"]);
  });
});

test("the cached rows of people stay within their limit", () => {
  const cacheBytesMax = 400_000;
  const { people, rows, run } = world({ cacheBytesMax });
  for (let batch = 0; batch < 100; batch++) {
    const steps = Array.from({ length: 20 }, (_, index): Step => {
      const set = [["text", `"${"x".repeat(500)}"`]] as const;
      return { timeMs: batch, distinctId: `${batch}-${index}`, person: { set } };
    });
    run({ timeMs: batch, distinctId: "hot" }, ...steps);
    expect(people.cacheBytes).toBeLessThan(cacheBytesMax);
  }
  expect(rows.members.size).toBe(2_001);
  expect(people.seen(seenLine(projectId, "hot", 100))).toBe(true);
  expect(people.seen(seenLine(projectId, "0-0", 100))).toBe(false);
  run({ timeMs: 200, distinctId: "0-0", person: { set: [["other", "1"]] } });
  expect(Object.keys(valuesOf(rows.personOf("0-0")?.person))).toEqual(["other", "text"]);
});

describe("rows queued for a commit", () => {
  test("do not change when later batches change the person", () => {
    const { people, rows } = world();
    const set = (value: string, timeMs: number) =>
      effectOf({ timeMs, distinctId: "a", person: { set: [["x", value]] } });
    const first = applyBatch(people, rows, [set("1", 1), set("2", 2)]);
    const second = applyBatch(people, rows, [set("3", 3)]);
    expect([first, second].map(({ members }) => members.length)).toEqual([1, 1]);
    expect(valuesOf(first.members[0]?.person)).toEqual({ x: "2" });
    expect(valuesOf(second.members[0]?.person)).toEqual({ x: "3" });
    expect(second.members[0]?.person?.version).toBe(2);
  });

  test("are read again after all cached rows were discarded", () => {
    const { people, rows, run } = world();
    run({ timeMs: 1, distinctId: "a" });
    applyBatch(people, rows, [effectOf({ ...link("alias", "a", "b"), place: { sequence: 9 } })]);
    people.begin([]);
    expect(people.seen(seenLine(projectId, "a", 2))).toBe(false);
    const changes = run({ timeMs: 2 * hourMs, distinctId: "a" });
    expect(changes.members).toMatchObject([
      { distinctId: "a", person: { idsTotal: 1, version: 2 } },
    ]);
    expect(changes.links).toEqual([]);
  });

  test("cause an error if a required row is missing", () => {
    const { people, rows, run } = world({ cacheBytesMax: 1 });
    run(link("alias", "a", "b"), link("alias", "a", "c"));
    run({ timeMs: 2, distinctId: "z" });
    people.begin([]);
    people.add(effectOf({ timeMs: 3, distinctId: "a" }));
    const members = rows.read(people.missing()).members.filter((row) => row.person === undefined);
    people.adopt({ members, groups: [], groupTypes: [] });
    expect(() => people.apply()).toThrow("have not been read");
  });
});

describe("a stored row whose properties were damaged by hand", () => {
  const edited = { json: '{"plan":"changed"}', state: "[[1,2],[],[],[]]" };

  function editedWorld() {
    const logged: unknown[] = [];
    const log = { warn: (fields: object) => void logged.push(fields) };
    const [first, rows] = [new People(), new Rows()];
    const group = { type: "company", key: "acme" } as const;
    const writes = { once: [], set: [["plan", '"pro"']], unset: [] } as const;
    applyAll(first, rows, [
      { timeMs: 1, distinctId: "a", person: { set: [["plan", `"${"x".repeat(70_000)}"`]] } },
      { timeMs: 1, distinctId: "b", person: { set: [["color", '"red"']] } },
      { timeMs: 1, group: { ...group, set: writes } },
    ]);
    const a = rows.members.get("a")!;
    rows.members.set("a", { ...a, person: { ...a.person!, properties: edited } });
    const acme = rows.groups.get("company/acme")!;
    rows.groups.set("company/acme", { ...acme, properties: edited });
    const people = new People({}, log);
    people.begin([...rows.largeProperties.values()]);
    return { people, rows, logged, group };
  }

  const droppedPerson = {
    table: "members",
    row: { project_id: projectId, uuid: personUuid(projectId, "a") },
  };

  test("loses the properties and is logged", () => {
    const { people, rows, logged, group } = editedWorld();
    const set = [["team", '"red"']] as const;
    applyAll(people, rows, [
      { timeMs: 2, distinctId: "a", person: { set } },
      { timeMs: 2, group: { ...group, set: { once: [], set, unset: [] } } },
      { timeMs: 3, distinctId: "a", person: { set: [["size", "1"]] } },
    ]);
    expect(valuesOf(rows.members.get("a")!.person)).toEqual({ team: '"red"', size: "1" });
    expect(valuesOf(rows.groups.get("company/acme"))).toEqual({ team: '"red"' });
    expect(rows.largeProperties.get(projectId)?.bytes).toBe(0);
    const row = { project_id: projectId, type: "company", key: "acme" };
    expect(logged).toEqual([droppedPerson, { table: "groups", row }]);
  });

  test("does not affect a person that is merged with it", () => {
    const { people, rows, logged } = editedWorld();
    applyAll(people, rows, [{ ...link("identify", "a", "b", 2) }]);
    expect(valuesOf(rows.personOf("a")!.person)).toEqual({ color: '"red"' });
    expect(logged).toEqual([droppedPerson]);
  });
});
