// Checks whether a folder is the npm package posthog-js with its scripts. The settings ask that,
// and so does what serves them.

import { existsSync } from "node:fs";
import { join } from "node:path";

/** The folder's name. Throws an Error whose message completes "PENSTOCK_X: …". */
export function posthogJsFolder(folder: string): string {
  if (folder === "") throw new Error("must not be empty");
  if (folder !== "off" && !isPosthogJs(folder)) {
    throw new Error(
      `must be the folder of the npm package posthog-js, or off: there is no dist/array.js in ${folder}`,
    );
  }
  return folder;
}

export function isPosthogJs(folder: string): boolean {
  return existsSync(join(folder, "dist", "array.js"));
}
