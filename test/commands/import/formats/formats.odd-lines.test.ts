import { describe, expect, test } from "vitest";
import { detectFormat, formatNamed } from "../../../../src/commands/import/formats/detect.ts";
import type { JsonObject } from "../../../../src/commands/import/json-text.ts";
import { bodiesOf } from "../bodies.ts";
import { fileWith, runImport } from "../import-kit.ts";

const uuid = "018f0000-0000-7000-8000-000000000001";
const time = "2024-07-06T12:00:00.000Z";

test.each([
  ["1720267200.0", "12345678901234567890"],
  ["1720267200", "1"],
  ["1720267200.00000000000000000", "1"],
  ["1720267200000.0", '"1234567890123456"'],
])("import from Mixpanel reads the time %s despite the number %s", async (seconds, long) => {
  const { bodies } = await bodiesOf([
    `{"event":"seen","properties":{"time":${seconds},"distinct_id":"u","n":${long}}}\n`,
  ]);
  const { batch } = JSON.parse(bodies[0]!) as { batch: JsonObject[] };
  expect(batch[0]!["timestamp"]).toBe(time);
});

describe("import", () => {
  const lineOf: Readonly<Record<string, (time: string) => string>> = {
    posthog: (at) => `{"event":"e","distinct_id":"u","timestamp":${at}}`,
    mixpanel: (at) => `{"event":"e","properties":{"distinct_id":"u","time":${at}}}`,
    amplitude: (at) => `{"event_type":"e","user_id":"u","event_time":${at}}`,
    segment: (at) => `{"type":"track","event":"e","userId":"u","timestamp":${at}}`,
  };

  test.each(Object.entries(lineOf))(
    "reports an invalid time in %s as invalid instead of missing",
    async (format, line) => {
      const times = ['"x"', "true", "{}", "1e300", "1e400", "-1e17"];
      const file = fileWith([...times, "null"].map((at) => `${line(at)}\n`).join(""));
      const { out, err } = await runImport(["--dry-run", "--format", format, file]);
      for (const index of times.keys())
        expect(err).toContain(`${file}:${index + 1}: stored: invalid_timestamp`);
      expect(err).toContain(`${file}:${times.length + 1}: stored: missing_timestamp`);
      expect(out).toContain("7 events would be stored (7 with a warning), 0 not");
    },
  );
});

const clicked = { uuid, event: "$autocapture", distinct_id: "u" };

test.each([
  [
    "an empty elements_chain in another object before it",
    { properties: { elements_chain: "" }, ...clicked, elements_chain: "a" },
    { $elements_chain: "a", elements_chain: "" },
  ],
  [
    "an empty elements_chain with elements",
    { ...clicked, properties: {}, elements_chain: "", elements: [{ tag_name: "a" }] },
    { $elements: [{ tag_name: "a" }] },
  ],
  [
    "no elements_chain with elements",
    { ...clicked, properties: {}, elements: [{ tag_name: "a" }] },
    { $elements: [{ tag_name: "a" }] },
  ],
  [
    "properties of another object before its own",
    { person: { properties: {} }, ...clicked, properties: '{"a":1}' },
    { a: 1 },
  ],
])("import from PostHog reads a line with %s", async (_, line, properties) => {
  for (const format of ["posthog", "posthog-batch-export"].map(formatNamed))
    for (const blanks of [undefined, 1]) {
      const text = JSON.stringify(line, undefined, blanks).replaceAll("\n", " ");
      const { bodies } = await bodiesOf([`${text}\n`], { format });
      const { batch } = JSON.parse(bodies[0]!) as { batch: JsonObject[] };
      expect(batch).toMatchObject([{ uuid, properties }]);
    }
});

test("import detects the format of a line with an invalid member", () => {
  for (const type of ["12345678901234567890", '{"toString":1}'])
    expect(detectFormat([`{"event":"e","distinct_id":"u","uuid":"1","type":${type}}`])).toBe(
      formatNamed("posthog"),
    );
});

describe("a line that is not an event", () => {
  const event = '{"event":"seen","distinct_id":"u","timestamp":"2024-07-06T12:00:00.000Z"}';

  test.each(["[]", "[1]", "null", "42", '"text"', '{"event":"seen","properties":{'])(
    "does not affect the import of other lines: %s",
    async (bad) => {
      for (const [at, lines] of [
        [1, [bad, event, event]],
        [2, [event, bad, event]],
      ] as const) {
        const file = fileWith(`${lines.join("\n")}\n`);
        const { out, err, error } = await runImport(["--dry-run", file]);
        expect(error).toMatchObject({ exitCode: 1 });
        expect(out).toContain("2 events would be stored, 1 not");
        expect(err).toContain(`${file}:${at}: not stored: not_`);
      }
    },
  );

  test.each([
    ["an array", ["[", `${event},`, event, "]"]],
    ["an array after an empty line", ["", "[", `${event},`, event, "]"]],
    ["an array that begins on the line of its first object", [`[${event},`, event, "]"]],
  ])("makes the whole file invalid if the file is %s", (_, lines) => {
    expect(detectFormat(lines)).toMatch(/it is a JSON array/);
  });

  test("is imported if it is an array of events on the first line", async () => {
    const file = fileWith(`[${event},${event}]\n${event}\n`);
    const { out, error } = await runImport(["--dry-run", file]);
    expect([out, error]).toEqual([expect.stringContaining("3 events would be stored"), undefined]);
  });

  test.each([
    ["an event", JSON.stringify(JSON.parse(event), undefined, 2).split("\n")],
    ["a response", ["{", '"results": [', `${event},`, event, "]", "}"]],
  ])("makes the whole file invalid if it is part of a formatted %s", (_, lines) => {
    expect(detectFormat(lines)).toMatch(/not complete JSON objects/);
  });

  test.each([[["42", "null"]], [["event,distinct_id", "7"]]])(
    "makes the whole file invalid if no line is an object: %j",
    (lines) => {
      expect(detectFormat(lines)).toMatch(/not JSON objects/);
    },
  );
});
