import { DatabaseError } from "pg";
import { expect, test } from "vitest";
import { leavesConnection } from "../../../../src/platform/postgres/faults.ts";
import { hasHugeNumber, isOfValue } from "../../../../src/readers/sinks/postgres/refused-events.ts";

function errorOf(code: string): DatabaseError {
  const error = new DatabaseError("test", 4, "error");
  error.code = code;
  return error;
}

test.each(["22001", "22P02", "22021"])("the PostgreSQL error %s is caused by an event", (code) => {
  expect(isOfValue(errorOf(code))).toBe(true);
});

// One code of each class: the server itself, its resources, its shutdown, a missing object, and a
// missing privilege.
test.each(["XX000", "XX001", "XX002", "53100", "57P01", "58030", "F0000", "42P01", "42501"])(
  "the PostgreSQL error %s is not caused by an event",
  (code) => {
    expect(isOfValue(errorOf(code))).toBe(false);
  },
);

test.each(["08006", "57P01", "F0001", "58030", "XX000", "XX001"])(
  "the connection is not used again after the PostgreSQL error %s",
  (code) => {
    expect(leavesConnection(errorOf(code))).toBe(false);
  },
);

test.each(["23505", "40001", "57014"])(
  "the connection is used again after the PostgreSQL error %s",
  (code) => {
    expect(leavesConnection(errorOf(code))).toBe(true);
  },
);

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
])("PostgreSQL may reject a number in the JSON %s: %s", (json, isHuge) => {
  expect(hasHugeNumber(Buffer.from(json))).toBe(isHuge);
});

test.each([
  [60_000, false],
  [70_000, true],
])("PostgreSQL may reject JSON with %i numbers of a thousand digits each: %s", (count, isHuge) => {
  const json = Buffer.from(JSON.stringify(Array(count).fill(0)).replaceAll("0", "1e-999"));
  expect(hasHugeNumber(json)).toBe(isHuge);
});
