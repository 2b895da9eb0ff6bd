import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/** Loads the first existing file of `places` (src/ and dist/ differ). Errors name the fix. */
export function loadNativeModule(name: string, places: readonly URL[]): unknown {
  const files = places.map((place) => fileURLToPath(place));
  const file = files.find((candidate) => existsSync(candidate)) ?? files[0]!;
  try {
    return createRequire(file)(file);
  } catch (cause) {
    const [why] = existsSync(file) ? (cause as Error).message.split("\n") : ["it is not built"];
    throw new Error(
      `the native ${name} ${file} does not load: ${why}: build it with \`npm run setup\``,
      { cause },
    );
  }
}
