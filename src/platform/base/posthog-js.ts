import { existsSync } from "node:fs";
import { join } from "node:path";

/**
 * Checks that the folder is the npm package posthog-js with its scripts; `off` is valid too. Throws
 * an Error whose message completes "PENSTOCK_X: …".
 */
export function posthogJsFolder(folder: string): string {
  if (folder === "") throw new Error("must not be empty");
  if (folder !== "off" && !isPosthogJs(folder)) {
    throw new Error(
      `must be the folder of the npm package posthog-js, or off: ${folder} contains no dist/array.js`,
    );
  }
  return folder;
}

export function isPosthogJs(folder: string): boolean {
  return existsSync(join(folder, "dist", "array.js"));
}
