import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { normaliseJson } from "../../src/events/normalise.ts";

describe("normalised JSON", () => {
  test("parses to the same value, on one line, whatever the white space was", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t", "\n"), (value, indent) => {
        const normalised = normaliseJson(JSON.stringify(value, undefined, indent));
        expect(normalised).toBe(JSON.stringify(value));
      }),
    );
  });

  test.each([
    "12345678901234567890",
    "1e400",
    "-1E+400",
    "0.1000",
    "1.0",
    "-0",
    "1E5",
    "3.141592653589793238462643383",
  ])("the number %s keeps its text", (number) => {
    expect(normaliseJson(`{"a": [ ${number} ]}`)).toBe(`{"a":[${number}]}`);
  });

  test("any number keeps its text, wherever it stands", () => {
    const digits = fc.stringMatching(/^(0|[1-9]\d{0,24})$/);
    const fractions = fc.stringMatching(/^(\.\d{1,24})?$/);
    const exponents = fc.stringMatching(/^([eE][+-]?\d{1,3})?$/);
    const numbers = fc.tuple(fc.constantFrom("", "-"), digits, fractions, exponents).map((parts) => parts.join(""));
    const templates = fc.constantFrom("[N]", "[1,N]", '{"a":N}', '{"a":[N,N]}', '{"a":{"b":N},"c":0}');
    fc.assert(
      fc.property(numbers, templates, fc.constantFrom("", " ", "\n"), (number, template, space) => {
        const text = template.replaceAll("N", space + number + space);
        expect(normaliseJson(text)).toBe(template.replaceAll("N", number));
      }),
      { numRuns: 3_000 },
    );
  });

  test.each([
    ['"\\ud800"', '"\ufffd"'],
    ['"a\\udc00b"', '"a\ufffdb"'],
    ['"\\ud83d\\ude00"', '"😀"'],
    ['"\\udc00\\ud800"', '"\ufffd\ufffd"'],
    ['"\\\\ud800"', '"\\\\ud800"'],
    ['"\\\\\\ud800"', '"\\\\\ufffd"'],
    ['{"\\ud800": 1}', '{"\ufffd":1}'],
  ])("in %s lone surrogates become U+FFFD", (text, normalised) => {
    expect(normaliseJson(text)).toBe(normalised);
  });

  test("the last of duplicate keys stays, and escaped keys are unescaped", () => {
    expect(normaliseJson('{"a":1,"\\u0061":2}')).toBe('{"a":2}');
    expect(normaliseJson('{"__proto__":{"x":1}}')).toBe('{"__proto__":{"x":1}}');
  });

  test("nesting deeper than the stack is a RangeError, what is no JSON a SyntaxError", () => {
    expect(() => normaliseJson("[".repeat(200_000) + "]".repeat(200_000))).toThrow(RangeError);
    expect(() => normaliseJson("{")).toThrow(SyntaxError);
  });
});
