import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import {
  isAbsent,
  mustBeReadable,
} from "../../../../src/readers/effects/store/sqlite/file-access.ts";
import { temporaryFolder } from "../../../kit/processes.ts";

test("a file in an inaccessible folder is not reported as missing", () => {
  const folder = temporaryFolder();
  const file = path.join(folder, "file");
  writeFileSync(file, "");
  expect(isAbsent(path.join(folder, "none"))).toBe(true);
  expect(() => mustBeReadable(path.join(folder, "none"))).toThrow("the file does not exist");
  expect(isAbsent(file)).toBe(false);
  expect(() => mustBeReadable(file)).not.toThrow();
  // Root may read every folder, so a file replaces the inaccessible folder.
  const behind = path.join(file, "effects.sqlite");
  expect(isAbsent(behind)).toBe(false);
  expect(() => mustBeReadable(behind)).toThrow(/cannot read .*: run this command as the user/);
});
