// Lines that a format's reading of bytes or of numbers might take for others.

import { expect, test } from "vitest";
import { detectFormat, formatNamed } from "../../../../src/cli/import/formats/detect.ts";
import type { JsonObject } from "../../../../src/cli/import/json-text.ts";
import { bodiesOf } from "../bodies.ts";

const uuid = "018f0000-0000-7000-8000-000000000001";
const time = "2024-07-06T12:00:00.000Z";

test.each([
  ["1720267200.0", "12345678901234567890"],
  ["1720267200", "1"],
  ["1720267200.00000000000000000", "1"],
  ["1720267200000.0", '"1234567890123456"'],
])("mixpanel: the time %s is read beside %s", async (seconds, long) => {
  const { bodies } = await bodiesOf([
    `{"event":"seen","properties":{"time":${seconds},"distinct_id":"u","n":${long}}}\n`,
  ]);
  const { batch } = JSON.parse(bodies[0]!) as { batch: JsonObject[] };
  expect(batch[0]!["timestamp"]).toBe(time);
});

const clicked = { uuid, event: "$autocapture", distinct_id: "u" };

test.each([
  [
    "an empty chain of another object first",
    { properties: { elements_chain: "" }, ...clicked, elements_chain: "a" },
    { $elements_chain: "a", elements_chain: "" },
  ],
  [
    "an empty chain, and elements",
    { ...clicked, properties: {}, elements_chain: "", elements: [{ tag_name: "a" }] },
    { $elements: [{ tag_name: "a" }] },
  ],
  [
    "no chain, and elements",
    { ...clicked, properties: {}, elements: [{ tag_name: "a" }] },
    { $elements: [{ tag_name: "a" }] },
  ],
  [
    "properties of another object first",
    { person: { properties: {} }, ...clicked, properties: '{"a":1}' },
    { a: 1 },
  ],
])("posthog: %s", async (_, line, properties) => {
  for (const format of ["posthog", "posthog-batch-export"].map(formatNamed))
    for (const blanks of [undefined, 1]) {
      const text = JSON.stringify(line, undefined, blanks).replaceAll("\n", " ");
      const { bodies } = await bodiesOf([`${text}\n`], { format });
      const { batch } = JSON.parse(bodies[0]!) as { batch: JsonObject[] };
      expect(batch).toMatchObject([{ uuid, properties }]);
    }
});

test("a member that is no text where a format has one keeps no other one from being told", () => {
  for (const type of ["12345678901234567890", '{"toString":1}'])
    expect(detectFormat([`{"event":"e","distinct_id":"u","uuid":"1","type":${type}}`])).toBe(
      formatNamed("posthog"),
    );
});
