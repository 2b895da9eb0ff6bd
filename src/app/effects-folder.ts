// The folder of the effects' database. The data folder is made where there is none. One that was
// named for the database is not: a slip in its name would make a new database elsewhere, and apply
// everything anew to it.

import path from "node:path";
import { CommandError } from "../commands/context.ts";
import { makeFolder } from "../platform/base/make-folder.ts";
import type { Config } from "../platform/settings/config.ts";
import { storePlace } from "../readers/effects/store/open.ts";
import { isAbsent } from "../readers/effects/store/sqlite/file-access.ts";

/** Throws a CommandError where the folder that was named is not there. */
export function readyFolder(config: Pick<Config, "effectsUrl" | "dataDir">): void {
  requireNamedFolder(config);
  if (folderOf(config) === path.resolve(config.dataDir)) makeFolder(config.dataDir);
}

/** As `readyFolder`, where somebody else makes the data folder. */
export function requireNamedFolder(config: Pick<Config, "effectsUrl" | "dataDir">): void {
  const folder = folderOf(config);
  if (folder === undefined || folder === path.resolve(config.dataDir) || !isAbsent(folder)) return;
  throw new CommandError(
    `open the effects' database: there is no folder ${folder}: make it, or name another file in PENSTOCK_EFFECTS_URL (--effects-url)`,
  );
}

/** Undefined where the database is no file. */
function folderOf(config: Pick<Config, "effectsUrl" | "dataDir">): string | undefined {
  const place = storePlace(config);
  return place.kind === "sqlite" ? path.dirname(place.file) : undefined;
}
