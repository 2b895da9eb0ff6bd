import { userInfo } from "node:os";
import { expect, test } from "vitest";
import { userOf } from "../../../src/commands/erase/receipt.ts";

test("a receipt names the user who created it", () => {
  expect(userOf(process)).toBe(userInfo().username);
});

test("a user without a name is given by number, as in a container", () => {
  const nameOf = () => {
    throw new Error("uv_os_get_passwd returned ENOENT");
  };
  expect(userOf({ getuid: () => 54_321 }, nameOf)).toBe("uid 54321");
});
