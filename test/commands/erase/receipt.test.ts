import { userInfo } from "node:os";
import { expect, test } from "vitest";
import { userOf } from "../../../src/commands/erase/receipt.ts";

test("the receipt of an erasure names the user who ran it", () => {
  expect(userOf(process)).toBe(userInfo().username);
});

test("the receipt of an erasure contains the number of a nameless user", () => {
  const nameOf = () => {
    throw new Error("uv_os_get_passwd returned ENOENT");
  };
  expect(userOf({ getuid: () => 54_321 }, nameOf)).toBe("uid 54321");
});
