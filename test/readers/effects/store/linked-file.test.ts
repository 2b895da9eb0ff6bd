// A database whose name is a link: everything beside it lies beside the file that is meant.

import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { storePlace } from "../../../../src/readers/effects/store/open.ts";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import { temporaryFolder } from "../../../kit/processes.ts";

const placeOf = (file: string) => storePlace({ effectsUrl: `sqlite:${file}`, dataDir: "." });

test("a name that is a link stands for what it leads to, which may be made yet", async () => {
  const folder = realpathSync(temporaryFolder());
  mkdirSync(path.join(folder, "volume"));
  const file = path.join(folder, "volume", "effects.sqlite");
  const [first, second] = [path.join(folder, "first"), path.join(folder, "second")];
  symlinkSync("volume/effects.sqlite", first);
  symlinkSync(first, second);
  expect(placeOf(second)).toEqual({ kind: "sqlite", file });
  const store = new SqliteStore({ file });
  await store.open();
  // By whichever name, one lock keeps it to one writer.
  const place = placeOf(second) as { readonly file: string };
  const other = new SqliteStore(place);
  await expect(other.open()).rejects.toThrow("writes to it: end that one");
  await store.close();
  expect(placeOf(file)).toEqual({ kind: "sqlite", file });
});

test("links in a circle are left to whoever opens them", () => {
  const folder = temporaryFolder();
  const [one, two] = [path.join(folder, "one"), path.join(folder, "two")];
  symlinkSync(one, two);
  symlinkSync(two, one);
  expect(placeOf(one)).toEqual({ kind: "sqlite", file: one });
});
