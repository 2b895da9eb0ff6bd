import path from "node:path";
import { CommandError } from "../commands/context.ts";
import { makeFolder } from "../platform/base/make-folder.ts";
import type { Config } from "../platform/settings/config.ts";
import { storePlace } from "../readers/effects/store/open.ts";
import { isAbsent } from "../readers/effects/store/sqlite/file-access.ts";

/** Creates the data folder if needed. Throws like `requireNamedFolder`. */
export function readyFolder(config: Pick<Config, "effectsUrl" | "dataDir">): void {
  requireNamedFolder(config);
  if (folderOf(config) === path.resolve(config.dataDir)) makeFolder(config.dataDir);
}

/**
 * Throws a CommandError if the folder of PENSTOCK_EFFECTS_URL does not exist: a typo would create a
 * new database in another folder and apply all events to it.
 */
export function requireNamedFolder(config: Pick<Config, "effectsUrl" | "dataDir">): void {
  const folder = folderOf(config);
  if (folder === undefined || folder === path.resolve(config.dataDir) || !isAbsent(folder)) return;
  throw new CommandError(
    `open the effects database: the folder ${folder} does not exist: create it, or set PENSTOCK_EFFECTS_URL (--effects-url) to another file`,
  );
}

function folderOf(config: Pick<Config, "effectsUrl" | "dataDir">): string | undefined {
  const place = storePlace(config);
  return place.kind === "sqlite" ? path.dirname(place.file) : undefined;
}
