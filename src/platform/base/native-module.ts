// Loads a native addon. Both have been built beside their sources, and are looked for from there
// and from dist/.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/**
 * Takes the first place that is there. Throws, with the cause, if the addon is not built or is not
 * for this Node.
 */
export function loadNativeModule(name: string, places: readonly URL[]): unknown {
  const files = places.map((place) => fileURLToPath(place));
  const file = files.find((candidate) => existsSync(candidate)) ?? files[0]!;
  try {
    return createRequire(file)(file);
  } catch (cause) {
    throw new Error(`Loading the ${name} addon: ${file} is not built or does not load`, { cause });
  }
}
