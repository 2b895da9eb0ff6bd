// The folder of the effects' database. The data folder is made where there is none. One that was
// named for the database is not: a slip in its name would make a new database elsewhere, and apply
// everything anew to it.

import path from "node:path";
import { CommandError } from "../cli/context.ts";
import { storePlace } from "../effects/store/open.ts";
import { isAbsent } from "../effects/store/sqlite/file-access.ts";
import { makeFolder } from "../embedded/make-folder.ts";
import type { Config } from "../settings/config.ts";

/** Throws a CommandError where the folder that was named is not there. */
export function readyFolder(config: Pick<Config, "effectsUrl" | "dataDir">): void {
  const place = storePlace(config);
  if (place.kind !== "sqlite") return;
  const folder = path.dirname(place.file);
  if (folder === path.resolve(config.dataDir)) makeFolder(folder);
  else if (isAbsent(folder))
    throw new CommandError(
      `open ${place.file}: there is no folder ${folder}: make it, or name another file in PENSTOCK_EFFECTS_URL (--effects-url)`,
    );
}
