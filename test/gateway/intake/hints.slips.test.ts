import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type MeantName, Typos } from "../../../src/gateway/intake/hints.ts";
import { membersOf } from "../../../src/platform/base/json-bytes.ts";

function found(sent: object | string, ...names: MeantName[]): string | undefined {
  const body = Buffer.from(typeof sent === "string" ? sent : JSON.stringify(sent));
  return new Typos().find({ body, start: 0, end: body.length }, ...names)?.sent;
}

describe("the search for a mistyped name", () => {
  test.each<[MeantName, string[]]>([
    [
      "event",
      [
        "evnt",
        "Event",
        "EVENT",
        "evetn",
        "eventt",
        "events",
        "name",
        "event_name",
        "eventName",
        "$event",
        "even",
      ],
    ],
    [
      "distinct_id",
      [
        "distinctId",
        "distinct-id",
        "distinctID",
        "DistinctId",
        "distinc_id",
        "distnict_id",
        "distinkt_idd",
      ],
    ],
    [
      "distinct_id",
      ["user_id", "userId", "anonymousId", "$distinctId", "distinct id".replace(" ", ".")],
    ],
    [
      "api_key",
      [
        "apiKey",
        "api-key",
        "apikey",
        "API_KEY",
        "api_kye",
        "key",
        "write_key",
        "project_api_key",
        "writeKey",
      ],
    ],
  ])("finds typos of %s: %j", (meant, slips) => {
    for (const slip of slips) expect(found({ zzz: 1, [slip]: "v" }, meant)).toBe(slip);
  });

  test.each(["events", "data", "items", "messages", "Batch", "bacth"])(
    "finds %s as a typo of batch if its value is an array",
    (slip) => {
      expect(found({ [slip]: [] }, "batch")).toBe(slip);
      expect(found({ [slip]: "v" }, "batch")).toBe(undefined);
    },
  );

  test("finds no typo in a name that is not similar", () => {
    const far = [
      "agent",
      "sent",
      "parent",
      "e",
      "description",
      "id_of_nothing",
      "timestamp",
      "batchelor",
      "é",
      "ev\u0000ent",
    ];
    for (const name of far) expect(found({ [name]: "v" }, "event", "api_key")).toBe(undefined);
    expect(found({ [`event${"_".repeat(40)}`]: "v" }, "event")).toBe(undefined);
    expect(found({ evnt: 5 }, "event")).toBe(undefined);
    expect(found({ properties: { evnt: "v" } }, "event")).toBe(undefined);
  });

  test("finds the closest of several similar names", () => {
    expect(found({ evemt: "v", Event: "v" }, "event")).toBe("Event");
    expect(found({ name: "v", evnt: "v" }, "event")).toBe("evnt");
    expect(found({ events: [1], Event: "v" }, "batch", "event")).toBe("events");
  });

  test("reads the same names as JSON.parse in any valid object", () => {
    const object = fc.dictionary(fc.string({ maxLength: 12 }), fc.jsonValue({ maxDepth: 3 }), {
      maxKeys: 8,
    });
    fc.assert(
      fc.property(
        object,
        fc.constantFrom(undefined, 1, "\t"),
        fc.string(),
        (value, indent, behind) => {
          const text = JSON.stringify(value, undefined, indent);
          const body = Buffer.from(`  ${text}${behind}`);
          const plain = Object.keys(JSON.parse(text) as object).filter((name) =>
            /^[!#-[\]-~]{1,32}$/.test(name),
          );
          expect(
            membersOf({ body, start: 2, end: 2 + Buffer.byteLength(text) }).map(({ name }) => name),
          ).toEqual(plain);
        },
      ),
    );
  });

  test("reads arbitrary bytes without an error", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.nat(200),
        fc.nat(200),
        (bytes, skipFrom, skipTo) => {
          const body = Buffer.concat([Buffer.from('{"a":'), bytes]);
          const skip = skipFrom < skipTo ? { skipFrom, skipTo } : {};
          expect(membersOf({ body, start: 0, end: body.length, ...skip }).length).toBeLessThan(65);
        },
      ),
    );
  });

  test("finds names after long values", () => {
    const before = '{"event":"e","properties":';
    const properties = `{"x":"${"y".repeat(1_000_000)}"}`;
    const body = Buffer.from(`${before}${properties},"userId":"u"}`);
    const span = { body, start: 0, end: body.length };
    const skip = { skipFrom: before.length, skipTo: before.length + properties.length };
    expect(membersOf({ ...span, ...skip }).map(({ name }) => name)).toEqual([
      "event",
      "properties",
      "userId",
    ]);
    expect(membersOf(span).map(({ name }) => name)).toEqual(["event", "properties"]);
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [index, 1]));
    expect(membersOf({ ...span, body: Buffer.from(JSON.stringify(many)) })).toHaveLength(64);
  });

  test("runs a limited number of times per turn of the event loop", async () => {
    const slips = new Typos();
    const body = Buffer.from(JSON.stringify({ padding: "x".repeat(4_000), evnt: "v" }));
    const span = { body, start: 0, end: body.length };
    let named = 0;
    while (slips.find(span, "event") !== undefined) named++;
    expect(named).toBeGreaterThan(2);
    expect(named).toBeLessThan(20);
    await setImmediate();
    expect(slips.find(span, "event")?.sent).toBe("evnt");
  });
});
