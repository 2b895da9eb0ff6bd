import { describe, expect, test } from "vitest";
import { withoutKeys } from "../../../src/platform/base/without-keys.ts";

describe("the removal of API keys from a text", () => {
  test.each([
    ['{"api_key":"phc_abc","event":"e"}', '{"api_key":*********,"event":"e"}'],
    ['{\\"token\\":"secret"}', '{\\"token\\":********}'],
    ['"\\u0061pi_k\\u0065y": "abc"}', '"\\*********\\u0065y": *****}'],
    ['"\\u0061pi_key\\": [ "abc" ]', '"\\***********\\": [ ***** ]'],
    ["authorization: Bearer", "authorization: ******"],
    ["event e", "event e"],
  ])("turns %s into %s", (text, shown) => {
    expect(withoutKeys(text)).toBe(shown);
  });

  // If two adjacent parts of a pattern matched the same character, these texts would take minutes.
  test.each([
    ["backslashes after escapes", `${"\\u0041".repeat(40)}${"\\".repeat(400_000)}`],
    ["escapes", "\\u0041".repeat(400_000)],
    ["names", "key".repeat(800_000)],
    ["backslashes after a name", `key${"\\".repeat(400_000)}`],
    ["spaces after a name", `key${" ".repeat(400_000)}`],
    ["brackets after a colon", `key:${"[".repeat(400_000)}&`],
  ])("takes linear time for %s", (_what, text) => {
    expect(withoutKeys(text)).toHaveLength(text.length);
  });
});
