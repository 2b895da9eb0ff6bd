import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { storePlace } from "../../../../src/readers/effects/store/open.ts";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import { temporaryFolder } from "../../../kit/processes.ts";

const storeOf = (file: string) => storePlace({ effectsUrl: `sqlite:${file}`, dataDir: "." });

test("a database path that is a link is resolved to its target", async () => {
  const folder = realpathSync(temporaryFolder());
  mkdirSync(path.join(folder, "volume"));
  const file = path.join(folder, "volume", "effects.sqlite");
  const [first, second] = [path.join(folder, "first"), path.join(folder, "second")];
  symlinkSync("volume/effects.sqlite", first);
  symlinkSync(first, second);
  expect(storeOf(second)).toEqual({ kind: "sqlite", file });
  const store = new SqliteStore({ file });
  await store.open();
  const place = storeOf(second) as { readonly file: string };
  const other = new SqliteStore(place);
  await expect(other.open()).rejects.toThrow("writes to it. End that process");
  await store.close();
  expect(storeOf(file)).toEqual({ kind: "sqlite", file });
});

test("a database path with circular links is returned unchanged", () => {
  const folder = temporaryFolder();
  const [one, two] = [path.join(folder, "one"), path.join(folder, "two")];
  symlinkSync(one, two);
  symlinkSync(two, one);
  expect(storeOf(one)).toEqual({ kind: "sqlite", file: one });
});
