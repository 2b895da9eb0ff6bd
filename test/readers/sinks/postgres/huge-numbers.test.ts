import { expect, test } from "vitest";
import { hasHugeNumber } from "../../../../src/readers/sinks/postgres/huge-numbers.ts";

test.each([
  ["[1e131071]", true],
  ['{"a":{"b":-0.5E+1000}}', true],
  ['{"a":1e-16383}', true],
  ["[1e0001000]", true],
  ["[1e99999999999999999999]", true],
  ["[1e999,1E+308,1e-0999]", false],
  ['{"1e131071":"1e131071 \\" 1e131071","true":true,"false":false}', false],
  ['["a\\\\",1e1000]', true],
  ['["a\\\\\\",1e1000"]', false],
  ["[12345678901234567890e2]", false],
  ["{}", false],
])("the JSON text %s has a number too long for PostgreSQL: %s", (json, isHuge) => {
  expect(hasHugeNumber(Buffer.from(json))).toBe(isHuge);
});

test.each([
  [60_000, false],
  [70_000, true],
])("JSON with %i numbers of a thousand digits is too long for PostgreSQL: %s", (count, isHuge) => {
  const json = Buffer.from(JSON.stringify(Array(count).fill(0)).replaceAll("0", "1e-999"));
  expect(hasHugeNumber(json)).toBe(isHuge);
});
