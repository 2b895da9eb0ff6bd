import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  additionsTo,
  bytesWithAdditions,
  takesAdditions,
  writeWithAdditions,
} from "../../../../src/gateway/intake/v1/additions.ts";
import { createNativeScanner } from "../../../../src/records/native.ts";
import { Header, ScanStatus } from "../../../../src/records/table.ts";
import { replacedBytesMax } from "../../../../src/records/verdict.ts";

const scanner = createNativeScanner(16);
const members = '"$lib":"sdk","$lib_version":"1"';

interface Added extends Record<string, unknown> {
  readonly properties?: Record<string, unknown>;
}

let replaced: unknown;

function withAdditions(event: object, indent: number, isCookieless = false): Added {
  return textWithAdditions(JSON.stringify(event, undefined, indent), isCookieless);
}

function textWithAdditions(event: string, isCookieless = false): Added {
  const body = Buffer.from(`{"batch":[${event}]}`);
  expect(scanner.scan(body)).toBe(ScanStatus.Ok);
  const item = { body, table: scanner.table, row: Header.Words };
  const ignored = { replaced: "" };
  const additions = additionsTo(item, { members, isCookieless }, ignored);
  replaced = JSON.parse(`{${ignored.replaced}}`);
  if (!takesAdditions(item)) return JSON.parse(event) as Added;
  const target = Buffer.alloc(bytesWithAdditions(item, additions));
  return JSON.parse(
    target.toString("utf8", 0, writeWithAdditions(item, additions, target)),
  ) as Added;
}

const names = ["$session_id", "$window_id", "$cookieless_mode", "$lib", "a", "é", '"', ""];
const id = fc.oneof(fc.string({ unit: "grapheme" }), fc.constant(null));
const switches = fc.constantFrom(true, false, "true", "FALSE ", "1", "0", 1, 0, null);
const options = fc.record(
  {
    cookieless_mode: switches,
    process_person_profile: switches,
    disable_skew_correction: switches,
    other: fc.jsonValue(),
  },
  { requiredKeys: [] },
);
const properties = fc.oneof(
  fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 2 })),
  fc.constantFrom(null, 1, "x", []),
);
const event = fc.record(
  { uuid: fc.uuid(), properties, session_id: id, window_id: id, options },
  { requiredKeys: [] },
);

describe("a v1 event's fields outside its properties", () => {
  test("are added to the properties as in a JavaScript object", () => {
    fc.assert(
      fc.property(event, fc.constantFrom(0, 1), (sent, indent) => {
        const isOn = (value: unknown) => /^(true|1)$/.test(String(value).trim().toLowerCase());
        const { session_id: session, window_id: window, options: said = {} } = sent;
        const outside = {
          ...(session && { $session_id: session }),
          ...(window && { $window_id: window }),
          ...(said.cookieless_mode != null && { $cookieless_mode: isOn(said.cookieless_mode) }),
          ...(said.disable_skew_correction != null && {
            $ignore_sent_at: isOn(said.disable_skew_correction),
          }),
          ...(said.process_person_profile != null && {
            $process_person_profile: isOn(said.process_person_profile),
          }),
          $lib: "sdk",
          $lib_version: "1",
        };
        const own = sent.properties;
        const takes =
          own === undefined ||
          own === null ||
          (typeof own === "object" && (!Array.isArray(own) || own.length === 0));
        const plain = JSON.parse(JSON.stringify(sent)) as Record<string, unknown>;
        const inside = takes
          ? { ...plain, properties: { ...outside, ...(plain["properties"] as object | null) } }
          : plain;
        expect(withAdditions(sent, indent)).toEqual(inside);
        expect(replaced).toEqual({});
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    [{ session_id: 1 }],
    [{ session_id: true }],
    [{ window_id: {} }],
    [{ window_id: "w".repeat(4_096) }],
    [{ options: [1] }],
    [{ options: "x" }],
    [{ options: { disable_skew_correction: [] } }],
    [{ options: { process_person_profile: "2" } }],
    [{ options: { product_tour_id: true } }],
    [{ options: { product_tour_id: 0.5 } }],
    [{ options: { other: "x".repeat(4_096) } }],
  ])("are recorded under `replaced` if they are unreadable: %j", (event) => {
    const { properties } = withAdditions(event, 0);
    expect(properties).toEqual({ $lib: "sdk", $lib_version: "1" });
    const long = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
    const [[name, value]] = Object.entries(event) as [[string, unknown]];
    const isLong = JSON.stringify(value).length > replacedBytesMax;
    expect(replaced).toEqual({ [name]: isLong ? long(value).slice(0, 256) : value });
  });

  test.each([
    [{ cookieless_mode: "yes" }],
    [{ cookieless_mode: [] }],
    [{ cookieless_mode: true, other: "x".repeat(4_096) }],
    ["cookieless_mode"],
    ["a\\b"],
    [["\u0000ookieless_mode"]],
  ])(
    "count as cookieless if they may have the unreadable option, only in a project with `cookieless`: %j",
    (options) => {
      for (const isCookieless of [true, false]) {
        const { properties } = withAdditions({ options }, 0, isCookieless);
        const flag = isCookieless ? { $cookieless_mode: true } : {};
        expect(properties).toEqual({ ...flag, $lib: "sdk", $lib_version: "1" });
        expect(replaced).toHaveProperty("options");
      }
    },
  );

  test("lose only the unreadable option", () => {
    const options = {
      disable_skew_correction: "x",
      process_person_profile: false,
      product_tour_id: 1.5,
    };
    const { properties } = withAdditions({ options, session_id: [], window_id: "w" }, 0);
    expect(properties).toMatchObject({ $window_id: "w", $process_person_profile: false });
    expect(Object.keys(properties!)).not.toContain("$ignore_sent_at");
    expect(replaced).toEqual({ options, session_id: [] });
  });

  test.each([{ options: [] }, { options: {} }, { options: null }])(
    "add nothing if they are %j",
    (event) => {
      expect(withAdditions(event, 1)).toEqual({
        ...event,
        properties: { $lib: "sdk", $lib_version: "1" },
      });
    },
  );

  test.each(["{}", "{ }", "{\n}"])("are the only members of %j", (empty) => {
    const properties = { $lib: "sdk", $lib_version: "1" };
    expect(textWithAdditions(empty)).toEqual({ properties });
    expect(textWithAdditions(`{"properties":${empty}}`)).toEqual({ properties });
  });

  test.each([
    ["t", "t"],
    [12, "12"],
  ])("add the product tour %j as %j", (tour, text) => {
    const read = withAdditions({ options: { product_tour_id: tour } }, 0);
    expect(read.properties).toMatchObject({ $product_tour_id: text });
  });
});
