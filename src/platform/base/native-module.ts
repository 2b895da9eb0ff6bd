import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

/** Loads the first existing file. The paths differ in src/ and dist/. Errors state the fix. */
export function loadNativeModule(name: string, urls: readonly URL[]): unknown {
  const files = urls.map((url) => fileURLToPath(url));
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
