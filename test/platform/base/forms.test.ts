import { describe, expect, test } from "vitest";
import { isLowerCaseUuid, isProjectId, isUuid } from "../../../src/platform/base/forms.ts";

const uuid = "0193a2b4-5c6d-7e8f-90a1-b2c3d4e5f607";

describe("the formats of ids", () => {
  test("a UUID has 36 characters, in any case", () => {
    expect([uuid, uuid.toUpperCase()].map(isUuid)).toEqual([true, true]);
    const others = ["", uuid.slice(1), `${uuid}0`, uuid.replaceAll("-", ""), `${uuid}\n`];
    for (const other of [...others, `{${uuid}}`, uuid.replace("0", "g")])
      expect([other, isUuid(other)]).toEqual([other, false]);
  });

  test("a displayed UUID has only lower-case letters", () => {
    expect(isLowerCaseUuid(uuid)).toBe(true);
    expect(isLowerCaseUuid(uuid.toUpperCase())).toBe(false);
    expect(isLowerCaseUuid(uuid.slice(1))).toBe(false);
  });

  test("a project id has 1 to 64 letters, digits, hyphens and underscores", () => {
    expect(["a", "A-b_9", "x".repeat(64)].map(isProjectId)).toEqual([true, true, true]);
    for (const other of ["", "x".repeat(65), "a b", "a.b", "é", "a\n"])
      expect([other, isProjectId(other)]).toEqual([other, false]);
  });
});
