import { chownSync, readdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { SqliteStore } from "../../../src/readers/effects/store/sqlite/store.ts";
import { ended, penstock, temporaryFolder } from "../../kit/processes.ts";

const isRoot = process.getuid?.() === 0;
const other = 65_534;

test.runIf(isRoot).each([
  ["rebuild", "database"],
  ["rebuild", "folder of the database"],
  ["verify", "database"],
])("effects %s as root creates no file if another user owns the %s", async (command, owned) => {
  const folder = temporaryFolder();
  const file = path.join(folder, "effects.sqlite");
  const store = new SqliteStore({ file });
  await store.open();
  await store.close();
  const name = owned === "database" ? file : folder;
  chownSync(name, other, other);
  const before = readdirSync(folder);
  const at = ["--effects-url", `sqlite:${file}`, "--nats-url", "nats://127.0.0.1:1"];
  const child = penstock("effects", command, ...at);
  expect(await ended(child)).toBe(1);
  expect(child.said.err).toContain(`${command}: user ${other} owns ${name}`);
  expect(readdirSync(folder)).toEqual(before);
});
