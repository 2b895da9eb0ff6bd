import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../../../src/commands/import/json-text.ts";
import { bodiesOf } from "../bodies.ts";

const time = "2024-07-06T12:00:00.000Z";

async function converted(line: JsonObject) {
  const text = JSON.stringify({ messageId: "m", timestamp: time, ...line });
  const { bodies, notes } = await bodiesOf([`${text}\n`]);
  expect(notes).toEqual([]);
  return (JSON.parse(bodies[0]!) as { batch: JsonObject[] }).batch;
}

const traits = { plan: "gold" };
const context = { traits, groupId: "g9" };

test.each(["track", "page", "screen", "identify", "alias"])(
  "import of a Segment %s call maps its traits and group",
  async (type) => {
    const line = { type, event: "e", userId: "u", previousId: "p", context, traits: { a: 1 } };
    expect(await converted(line)).toMatchObject([
      { $set: { plan: "gold", a: 1 }, properties: { $groups: { company: "g9" } } },
    ]);
  },
);

test("import of a Segment group call applies its traits to the group", async () => {
  const line = { type: "group", userId: "u", groupId: "g1", context, traits: { name: "ACME" } };
  const [event, ofUser, ...more] = await converted(line);
  const $groups = { company: "g1" };
  expect(event).toMatchObject({
    event: "$groupidentify",
    properties: { $group_key: "g1", $group_set: { name: "ACME" }, $groups },
  });
  const set = { event: "$set", distinct_id: "u", timestamp: time, properties: { $groups } };
  expect(ofUser).toEqual({ ...set, $set: traits, uuid: expect.any(String) });
  expect(more).toEqual([]);
  expect(ofUser?.["uuid"]).not.toBe(event?.["uuid"]);
  expect(await converted(line)).toEqual([event, ofUser]);
});

test("import from Segment prefers groups in properties to groups in context", async () => {
  const properties = { $groups: { company: "own", team: "t" } };
  const line = { type: "track", event: "e", userId: "u", context, properties };
  expect(await converted(line)).toMatchObject([{ properties }]);
});

describe("import of a Segment alias call", () => {
  test.each<[string, JsonObject, unknown, unknown]>([
    ["both ids", { userId: "u", previousId: "p", anonymousId: "a" }, "p", "u"],
    ["no user id", { previousId: "p", anonymousId: "a" }, "p", "a"],
    ["no previous id", { userId: "u", anonymousId: "a" }, "a", "u"],
    [
      "a previous id that is the user's",
      { userId: "7", previousId: 7, anonymousId: "a" },
      "a",
      "7",
    ],
    ["numbers", { userId: 9002, previousId: 9001 }, 9001, 9002],
  ])("with %s links the right ids", async (_, ids, before, main) => {
    expect(await converted({ type: "alias", ...ids })).toMatchObject([
      { event: "$create_alias", distinct_id: before, properties: { alias: main } },
    ]);
  });
});
