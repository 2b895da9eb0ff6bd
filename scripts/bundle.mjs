// Puts what running Penstock takes, and nothing else, into a new folder: the compiled gateway with its addons, the packages it
// imports, and the pinned Node. The container image and the systemd unit run from such a folder. nats-server is not in it.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { addonsNotBuilt, buildAddons } from "./lib/addon.mjs";
import { buildDist, installPackages } from "./lib/install.mjs";
import { noteGroup, takeLock } from "./lib/lock.mjs";
import { requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import { modulesDir, root, runtimeNode, SetupError } from "./lib/project.mjs";
import { createRunner } from "./lib/runner.mjs";

const addonFiles = [
  join("scan", "addon", "build", "Release", "event_scan.node"),
  join("http", "addon", "build", "Release", "connection_id.node"),
];

async function bundle(target) {
  if (target === undefined) throw new SetupError("usage: npm run bundle -- <new folder>");
  const folder = resolve(target);
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new SetupError(`${folder} is there and not empty`);
  await buildAll();
  mkdirSync(folder, { recursive: true });
  cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true });
  for (const file of addonFiles) cpSync(join(root, "src", file), join(folder, "dist", file));
  for (const file of ["package.json", "LICENSE"]) cpSync(join(root, file), join(folder, file));
  for (const place of runtimePackages()) copyPackage(place, folder);
  mkdirSync(join(folder, "bin"));
  cpSync(runtimeNode(), join(folder, "bin", "node"), { dereference: true });
  writeFileSync(join(folder, "bin", "penstock"), launcher, { mode: 0o755 });
  process.stdout.write(`bundle: ${folder}\n`);
}

async function buildAll() {
  requireNode();
  const runner = createRunner({ noteGroup });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => runner.interrupt(signal));
  const giveBack = await takeLock(runner);
  try {
    requirePrograms();
    await installPackages(runner);
    await buildAddons(runner);
    await buildDist(runner);
  } finally {
    giveBack();
  }
  // Without them it works, more slowly; what is rolled out is to be the fast one.
  const [notBuilt] = addonsNotBuilt();
  if (notBuilt !== undefined) throw new SetupError(`the ${notBuilt.name} did not build: see ${notBuilt.log}`);
}

/** Where npm has put the packages that the gateway imports, and those that they import. */
function runtimePackages() {
  const { packages } = JSON.parse(readFileSync(join(modulesDir, ".package-lock.json"), "utf8"));
  return Object.entries(packages)
    .filter(([, row]) => !row.dev && !row.optional && !row.devOptional)
    .map(([place]) => place);
}

function copyPackage(place, folder) {
  // uWebSockets.js comes with a binary for every platform and Node there is.
  const ownBinary = `uws_${process.platform}_${process.arch}_127.node`;
  const isWanted = (file) => !/uws_[^/]*\.node$/.test(file) || file.endsWith(ownBinary);
  cpSync(join(root, place), join(folder, place), { recursive: true, filter: isWanted });
}

const launcher = `#!/bin/sh
# Penstock on the Node it was built for.
exec "$(dirname "$0")/node" "$(dirname "$0")/../dist/main.js" "$@"
`;

try {
  await bundle(process.argv[2]);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`bundle: ${error.message}\n`);
  process.exitCode = 1;
}
