import { closeSync, existsSync, openSync, readdirSync, readSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, platform } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

const prebuiltFolder = fileURLToPath(new URL("../../../prebuilt", import.meta.url));
/** The platform of this process, such as `linux-x64`. */
export const hostPlatform = `${platform()}-${arch()}`;

/** A native module that is missing or does not load. */
export class NativeModuleError extends Error {
  /** The platforms for which the files are, if they are not for this host. */
  readonly otherPlatforms: string | undefined;

  constructor(message: string, options: ErrorOptions & { readonly otherPlatforms?: string }) {
    super(message, options);
    this.otherPlatforms = options.otherPlatforms;
  }
}

/** Loads the locally built file, or otherwise the prebuilt file of the npm package. Throws a NativeModuleError. */
export function loadNativeModule(name: string, urls: readonly URL[]): unknown {
  const built = urls.map((url) => fileURLToPath(url));
  const files = [...built, join(prebuiltFolder, hostPlatform, basename(built[0]!))];
  const found = files.find((candidate) => existsSync(candidate)) ?? files[0]!;
  try {
    return createRequire(found)(found);
  } catch (cause) {
    const [why] = existsSync(found) ? (cause as Error).message.split("\n") : ["it is not built"];
    const otherPlatforms = otherPlatformsOf(found);
    if (otherPlatforms !== undefined)
      throw new NativeModuleError(
        `the native ${name} does not load: this package is for ${otherPlatforms}, and this host is ${hostPlatform}: install the package for ${hostPlatform}, or build the addons with \`npm rebuild penstock\``,
        { cause, otherPlatforms },
      );
    throw new NativeModuleError(
      `the native ${name} ${found} does not load: ${why}. Build it with \`npm run setup\`, or for the npm package with \`npm rebuild penstock\``,
      { cause },
    );
  }
}

/** Returns undefined if the file is for this host, or if there are no files for other platforms. */
function otherPlatformsOf(file: string): string | undefined {
  if (existsSync(file)) {
    const found = platformOf(file);
    return found === hostPlatform ? undefined : found;
  }
  if (!existsSync(prebuiltFolder)) return undefined;
  const names = readdirSync(prebuiltFolder).filter((one) => /^[a-z0-9]+-[a-z0-9]+$/.test(one));
  return names.length === 0 ? undefined : names.sort().join(" and ");
}

/** Returns the platform of an ELF or Mach-O file, or undefined if it is not known. */
function platformOf(file: string): string | undefined {
  const header = Buffer.alloc(20);
  const opened = openSync(file, "r");
  try {
    readSync(opened, header);
  } finally {
    closeSync(opened);
  }
  const elf = { 62: "linux-x64", 183: "linux-arm64" } as Record<number, string>;
  if (header.readUInt32BE(0) === 0x7f454c46) return elf[header.readUInt16LE(18)];
  const machO = { 16777223: "darwin-x64", 16777228: "darwin-arm64" } as Record<number, string>;
  if (header.readUInt32LE(0) === 0xfeedfacf) return machO[header.readUInt32LE(4)];
  return undefined;
}
