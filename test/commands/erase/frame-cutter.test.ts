import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { FrameCutter } from "../../../src/commands/erase/frame-cutter.ts";
import { storedLine, type TestEvent } from "../../kit/stored-events.ts";
import { eventOf, project } from "./erase-kit.ts";

const digits = "98765432109876543210";
const cutter = new FrameCutter(project, new Set(["ada", digits, "x".repeat(300), '{"n":1}', 'é"']));

function cut(lines: readonly string[], { isShared = false } = {}) {
  const data = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  const name = { stream: "PENSTOCK_LIVE_0", lane: "live", partition: 0, sequence: 1 } as const;
  const projectId = isShared ? undefined : project;
  const { data: kept, ...counts } = cutter.cut({ ...name, projectId, data });
  return { ...counts, lines: kept.toString().split("\n").slice(0, -1) };
}

function lineOf(distinctId: string, more: Partial<TestEvent> = {}): string {
  return storedLine(eventOf(distinctId, more), project, "live");
}

const named = (event: string, properties: TestEvent["properties"], personProfile = true) =>
  lineOf("bob", { event, ...(properties && { properties }), personProfile });

test.each([
  ["by its distinct id", lineOf("ada")],
  ["by a distinct id with escaped characters", lineOf('é"')],
  ["by a distinct id that is escaped without need", lineOf("ada").replace('"ada"', '"\\u0061da"')],
])("an erased person's event is found %s", (_, line) => {
  const [before, behind] = [lineOf("bob", { properties: { digits: 1e21 } }), lineOf("eve")];
  expect(cut([before, line, behind])).toEqual({
    erased: 1,
    kept: 2,
    doubtful: 0,
    lines: [before, behind],
  });
});

function withOwnId(line: string): string {
  return line.replace(
    /("(?:\$anon_distinct_id|(?:\\u0061|a)lias)":)(?:"(?:ada|x{300})"|\{"n":1\}|\d{20})/,
    '$1"bob"',
  );
}

test.each([
  ["by an identify", named("$identify", { $anon_distinct_id: "ada" })],
  ["by an alias", named("$create_alias", { alias: "ada" })],
  ["by a merge", named("$merge_dangerously", { alias: "ada" })],
  [
    "by an identify that creates no person",
    named("$identify", { $anon_distinct_id: "ada" }, false),
  ],
  ["by a merge that creates no person", named("$merge_dangerously", { alias: "ada" }, false)],
  ["by a long id", named("$create_alias", { alias: "x".repeat(300) }, false)],
  ["by an id that is not a string", named("$create_alias", { alias: { n: 1 } })],
  [
    "by an id that is not a string, without a person",
    named("$create_alias", { alias: { n: 1 } }, false),
  ],
  [
    "by an event whose name is escaped without need",
    named("$identify", { $anon_distinct_id: "ada" }, false).replace("$id", "\\u0024id"),
  ],
  [
    "by a member whose name is escaped without need",
    named("$create_alias", { alias: "ada" }, false).replace('"alias', '"\\u0061lias'),
  ],
  [
    "by a number of more digits than a double has",
    named("$identify", { $anon_distinct_id: 1 }, false).replace('id":1', `id":${digits}`),
  ],
  [
    "by a repeated member",
    named("$identify", { $anon_distinct_id: "ada" }, false).replace(
      '"ada"',
      '"ada","$anon_distinct_id":"x"',
    ),
  ],
])("the erased id is removed from another person's event: %s", (_, line) => {
  const [before, behind] = [lineOf("bob", { properties: { digits: 1e21 } }), lineOf("eve")];
  const { lines, ...counts } = cut([before, line, behind]);
  expect(counts).toEqual({ erased: 1, kept: 3, doubtful: 0 });
  expect(lines).toEqual([before, withOwnId(line), behind]);
  expect(lines[1]).not.toBe(line);
  expect(cut(lines)).toMatchObject({ erased: 0 });
});

test("an erased person's event about a group keeps the group's data", () => {
  const properties = {
    $group_type: "company",
    $group_key: "acme",
    $group_set: { plan: "x" },
    $group_unset: ["y"],
    $ip: "10.0.0.1",
    $set: { email: "ada@example.com" },
    name: "Ada",
  };
  const line = lineOf("ada", { event: "$groupidentify", kind: "group_identify", properties });
  const { lines, ...counts } = cut([line, lineOf("eve")]);
  expect(counts).toEqual({ erased: 1, kept: 2, doubtful: 0 });
  const { uuid, received_at, timestamp } = JSON.parse(line) as Record<string, unknown>;
  const { $group_type, $group_key, $group_set, $group_unset } = properties;
  expect(JSON.parse(lines[0]!)).toMatchObject({
    uuid,
    received_at,
    timestamp,
    project_id: project,
    distinct_id: "$erased",
    properties: { $group_type, $group_key, $group_set, $group_unset },
  });
  expect(lines[0]).not.toMatch(/ada|Ada|10\.0\.0/);
  const nameless = lineOf("ada", { event: "$groupidentify", kind: "group_identify" });
  expect(cut([nameless, lineOf("eve")])).toMatchObject({ erased: 1, kept: 1 });
});

test.each([
  ["whose property has the id", lineOf("bob", { properties: { friend: "ada" } })],
  ["that contains the id in a different form", named("seen", { alias: "ada" })],
  ["of another project", lineOf("ada").replace(`"${project}"`, '"other"')],
])("an event %s is not erased", (_, line) => {
  expect(cut([line], { isShared: true })).toMatchObject({ erased: 0, doubtful: 0 });
});

test("an unreadable line with the erased id is reported, not erased", () => {
  const broken = ['{"distinct_id":"ada"', "{}", "", "nothing"];
  expect(cut([...broken, lineOf("ada")])).toEqual({
    erased: 1,
    kept: 3,
    doubtful: 1,
    lines: broken.filter((line) => line !== ""),
  });
});
