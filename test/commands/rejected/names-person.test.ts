import { describe, expect, test } from "vitest";
import { namesPerson } from "../../../src/commands/rejected/rejected-eraser.ts";

const long = "12345678901234567890";
const names = (item: string, ...ids: string[]) => namesPerson({ item }, new Set(ids));

describe("an item has an id of the person", () => {
  test.each([
    ["a long number", `{"distinct_id": ${long} }`, long],
    ["a number with an exponent", '{"properties":{"distinct_id":1e21}}', "1e21"],
    ["a number in an array", `{"user_ids":[1,[2,${long}]]}`, long],
    ["an array", `{"distinct_id":[1, ${long}]}`, `[1,${long}]`],
    ["an object", `{"$distinct_id":{"n": ${long}}}`, `{"n":${long}}`],
    ["a text in an array", '{"a":[{"b":["ada"]}]}', "ada"],
    ["an escaped text", String.raw`{"a":"\u0061da"}`, "ada"],
    ["an escaped name", String.raw`{"\u0069d":7007}`, "7007"],
    ["a list of items", `[{"x":1},{"alias":${long}}]`, long],
    ["a text alone", '"ada"', "ada"],
  ])("as %s", (_, item, id) => {
    expect(names(item, id)).toBe(true);
    expect(names(item, "other", id)).toBe(true);
    expect(names(item, "other")).toBe(false);
  });

  test("not as a number that is not equal, or that is not an id", () => {
    expect(names(`{"distinct_id":${long}}`, "12345678901234567000")).toBe(false);
    expect(names('{"total":7007,"values":[7007]}', "7007")).toBe(false);
    expect(names('{"ids":[{"total":7007}]}', "7007")).toBe(false);
  });

  test("perhaps, if the item is nested too deeply and has its text", () => {
    const deep = (text: string) => `${'{"a":['.repeat(5_000)}${text}${"]}".repeat(5_000)}`;
    expect(names(deep(`{"id":${long}}`), long)).toBe(true);
    expect(names(deep("1"), long)).toBe(false);
    expect(names("{ not JSON ada", "ada")).toBe(true);
  });

  test("in its detail", () => {
    expect(namesPerson({ item: "{}", detail: 'the id "ada" is …' }, new Set(["ada"]))).toBe(true);
  });
});
