import { linkSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { writeWhole } from "../../../src/platform/base/files.ts";
import { temporaryFolder } from "../../kit/processes.ts";

test.each([
  ["symbolic", symlinkSync],
  ["hard", linkSync],
])("writing a file follows no %s link in place of the temporary file", async (_, makeLink) => {
  const folder = temporaryFolder();
  const [file, other] = [path.join(folder, "state"), path.join(folder, "other")];
  writeFileSync(other, "foreign");
  makeLink(other, `${file}.new`);
  await writeWhole(file, "mine");
  expect(readFileSync(file, "utf8")).toBe("mine");
  expect(readFileSync(other, "utf8")).toBe("foreign");
  expect(readdirSync(folder).sort()).toEqual(["other", "state"]);
});
