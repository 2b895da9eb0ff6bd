import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

/** Loads the locally built file, or otherwise the prebuilt file of the npm package. */
export function loadNativeModule(name: string, urls: readonly URL[]): unknown {
  const built = urls.map((url) => fileURLToPath(url));
  const prebuilt = `../../../prebuilt/${platform()}-${arch()}/${basename(built[0]!)}`;
  const files = [...built, fileURLToPath(new URL(prebuilt, import.meta.url))];
  const found = files.find((candidate) => existsSync(candidate)) ?? files[0]!;
  try {
    return createRequire(found)(found);
  } catch (cause) {
    const [why] = existsSync(found) ? (cause as Error).message.split("\n") : ["it is not built"];
    throw new Error(
      `the native ${name} ${found} does not load: ${why}: build it with \`npm run setup\`, or for the npm package with \`npm rebuild penstock\``,
      { cause },
    );
  }
}
