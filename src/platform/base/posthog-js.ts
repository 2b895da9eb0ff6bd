// Checks whether a folder is the npm package posthog-js with its scripts. The settings need to know
// that, and so does the code that serves the scripts.

import { existsSync } from "node:fs";
import { join } from "node:path";

/**
 * Returns the folder's name, or `off` as it is. Throws an Error whose message completes
 * "PENSTOCK_X: …".
 */
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
