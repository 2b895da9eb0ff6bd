import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "../../../src/commands/import/json-text.ts";

const written = (text: string): string => JSON.stringify(parseJson(text));

test.each([
  "12345678901234567890",
  "12345678901.12345678",
  "123456789.123456789",
  "999999999999999.95",
  "-0.1234567890123456789",
  "1e400",
  "-1E-999",
  "-0",
  "-0.0",
  "0.1",
  "1.5",
  "-0.5",
  "1720267200",
])("import keeps the digits of %s", (number) => {
  expect(written(number)).toBe(number);
  expect(written(`[1,${number}]`)).toBe(`[1,${number}]`);
  expect(written(`{"a":{"b": ${number} },"c":"-0 12345678901234567"}`)).toBe(
    `{"a":{"b":${number}},"c":"-0 12345678901234567"}`,
  );
});

test("import keeps the digits of decimals of any length", () => {
  const digits = fc.stringMatching(/^[1-9]\d{0,25}$/);
  const decimal = fc.tuple(fc.boolean(), digits, fc.stringMatching(/^\d{0,25}[1-9]$/));
  fc.assert(
    fc.property(decimal, ([isNegative, whole, part]) => {
      const number = `${isNegative ? "-" : ""}${whole}.${part}`;
      expect(written(`{"a":${number}}`)).toBe(`{"a":${number}}`);
    }),
  );
});

test("import keeps the digits of each number in a list", () => {
  const whole = fc.stringMatching(/^-?(?:0|[1-9]\d{0,17})$/);
  const part = fc.stringMatching(/^(?:\.\d{1,18})?$/);
  const exponent = fc.stringMatching(/^(?:[eE][+-]?\d{1,3})?$/);
  const number = fc.tuple(whole, part, exponent).map((parts) => parts.join(""));
  const gap = fc.constantFrom("", " ", "\t");
  fc.assert(
    fc.property(fc.array(number, { maxLength: 4 }), gap, fc.string(), (numbers, blank, other) => {
      const members = numbers.map((one) => `${blank}${one}${blank}`);
      const alone = numbers.map((one) => (isKept.test(one) ? one : JSON.stringify(Number(one))));
      const text = JSON.stringify(other);
      expect(written(`[${[...members, text].join(",")}]`)).toBe(`[${[...alone, text].join(",")}]`);
    }),
    { numRuns: 2_000 },
  );
});

const isKept = /\d[\d.]{15}|[eE][+-]?\d{3}|-0(?:\.0*)?(?:[eE][+-]?\d+)?$/;
