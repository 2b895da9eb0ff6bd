import { describe, expect, test } from "vitest";
import { withMember, withoutMember } from "../../../src/commands/rejected/item-text.ts";

describe("a member of a JSON text", () => {
  test("is set, and every other value keeps its bytes", () => {
    const text = '{ "n" : 12345678901234567890 , "x":1.10,"e":"\\u00e9" }';
    expect(withMember(text, ["x"], "2")).toBe('{"n" : 12345678901234567890,"e":"\\u00e9","x":2}');
    expect(withMember("{}", ["a"], '"b"')).toBe('{"a":"b"}');
  });

  test("is set in an object that exists, is missing or is not an object", () => {
    expect(withMember('{"p":{"a":1}}', ["p", "b"], "2")).toBe('{"p":{"a":1,"b":2}}');
    expect(withMember("{}", ["p", "b", "c"], "2")).toBe('{"p":{"b":{"c":2}}}');
    expect(withMember('{"p":[1]}', ["p", "b"], "2")).toBe('{"p":{"b":2}}');
  });

  test("replaces every member of the name, also with escapes", () => {
    expect(withMember('{"a":1,"\\u0061":2,"b":3}', ["a"], "4")).toBe('{"b":3,"a":4}');
  });

  test("is removed at any depth, and a missing one changes nothing", () => {
    const text = '{"a":1,"p":{"a":{"b":1, "c" : 2}},"b":"x"}';
    expect(withoutMember(text, ["a"])).toBe('{"p":{"a":{"b":1, "c" : 2}},"b":"x"}');
    expect(withoutMember(text, ["p", "a", "b"])).toBe('{"a":1,"p":{"a":{"c" : 2}},"b":"x"}');
    expect(withoutMember(text, ["missing"])).toBe(text);
    expect(JSON.parse(withoutMember(text, ["b", "x"]))).toEqual(JSON.parse(text));
  });
});
