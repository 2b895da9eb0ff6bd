import { accessSync, constants, statSync } from "node:fs";
import { StoreError } from "../../../../platform/base/store-error.ts";

/** Throws a StoreError with instructions if this user cannot read the file. */
export function mustBeReadable(file: string): void {
  if (isAbsent(file))
    throw new StoreError(
      `cannot read ${file}: the file does not exist: start \`penstock effects\`, which creates it, or set PENSTOCK_EFFECTS_URL (--effects-url) to another database`,
    );
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    const reason = (error as Error).message;
    throw new StoreError(
      `cannot read ${file} (${reason}): run this command as the user of \`penstock effects\``,
    );
  }
}

/** Returns true if the file does not exist, and false if the user has no permission to check. */
export function isAbsent(file: string): boolean {
  try {
    statSync(file);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
