import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { unknownKeyDetail } from "../../../src/gateway/intake/hints.ts";
import { codePoint } from "../../kit/code-points.ts";

describe("the answer to an unknown API key", () => {
  test.each([
    [
      "phc_0123456789abcdef",
      "No project has the API key that begins with phc_0123 (20 characters)",
    ],
    ["phc_abcdefgh", "No project has the API key that begins with phc_abcd (12 characters)"],
    ["phc_nobody1", "No project has the API key that begins with phc_n (11 characters)"],
    ["k", "No project has the API key of 1 character"],
    [
      "phx_0123456789abcdef",
      /\(20 characters\): it looks like a personal key: send the key of the project$/,
    ],
    ["<ph_project_api_key>", /begins with <ph_proj .*: it looks like a placeholder$/],
    ["YOUR_API_KEY_HERE", /placeholder$/],
    ["{{POSTHOG_KEY_OF_MINE}}", /placeholder$/],
    ["undefined", /begins with unde .*placeholder$/],
    ['"phc_0123456789abcdef"', /quotes around it$/],
    ["Bearer phc_0123456789abcdef", /Bearer before it$/],
    ["phc_0123456 789abcdef", /white space inside$/],
    ["phc_0123456\u0430789abcdef", /characters that no key has$/],
    ["phc_\u202e\u00000123456789", /begins with phc_\?\?01 /],
  ])("describes the key without showing it: %j", (key, detail) => {
    const said = unknownKeyDetail(key);
    if (typeof detail === "string") expect(said).toBe(detail);
    else expect(said).toMatch(detail);
  });

  test("shows at most 8 characters and half of the key", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 300, unit: codePoint }), (key) => {
        const said = unknownKeyDetail(key);
        expect(said).toMatch(/^[ -~]{30,160}$/);
        const shown = /begins with (\S*) \(/.exec(said)?.[1] ?? "";
        expect(shown.length).toBeLessThanOrEqual(Math.min(8, key.length < 12 ? key.length / 2 : 8));
      }),
    );
  });
});
