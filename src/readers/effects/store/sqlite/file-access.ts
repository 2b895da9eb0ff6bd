// Whether a database's file is there, and who may read it.

import { accessSync, constants, statSync } from "node:fs";
import { StoreError } from "../../../../platform/base/store-error.ts";

/** Throws a StoreError that says what is to be done. */
export function mustBeReadable(file: string): void {
  if (isAbsent(file))
    throw new StoreError(
      `read ${file}: there is no such file: \`penstock effects\` makes it when it first runs, and PENSTOCK_EFFECTS_URL (--effects-url) names another`,
    );
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    const reason = (error as Error).message;
    throw new StoreError(
      `read ${file}: it cannot be read (${reason}): run this as the user that \`penstock effects\` runs as`,
    );
  }
}

/** Whether there is surely no such file; false where this user may not even look. */
export function isAbsent(file: string): boolean {
  try {
    statSync(file);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
