// Says which binary of the HTTP library is in use: its package, version and SHA-256. The package is
// a repack of the official one, so a change of the binary under the same version is to be seen in
// the log of every test run.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { modulesDir } from "./lib/project.mjs";

const folder = join(modulesDir, "uWebSockets.js");
const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const file = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;

/** Where packages put the binaries: the official one and its repacks. */
function binary() {
  for (const place of [file, join("dist", file), join("dist", "bin", file)]) {
    try {
      return { place, bytes: readFileSync(join(folder, place)) };
    } catch {
      // In another place.
    }
  }
  throw new Error(`there is no ${file} in ${folder}`);
}

const { place, bytes } = binary();
const hash = createHash("sha256").update(bytes).digest("hex");
process.stdout.write(`HTTP library: ${name} ${version}, ${place}, sha256 ${hash}\n`);
