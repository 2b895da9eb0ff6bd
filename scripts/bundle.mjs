// Copies exactly what running Penstock needs into a new folder: the compiled gateway with its
// addons, the packages it imports, the posthog-js scripts that it serves, its documents, the
// package for programs that read events, and the pinned Node. The container image and the systemd
// unit run from such a folder. nats-server is not included.

import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { addonBuilds, addonsNotBuilt, compilersMax } from "./lib/addon.mjs";
import { packConsumer } from "./lib/consumer-package.mjs";
import { bringDuckdb } from "./lib/duckdb.mjs";
import { buildDist, installPackages } from "./lib/install.mjs";
import { noteGroups, takeLock } from "./lib/lock.mjs";
import { gatewayFlag, sinkFlag } from "./lib/node-flags.mjs";
import { placesFor } from "./lib/packages.mjs";
import { requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import {
  cacheDir,
  exitCodeOf,
  modulesDir,
  root,
  runtimeNode,
  SetupError,
  UsageError,
} from "./lib/project.mjs";
import { createRunner } from "./lib/runner.mjs";

const addonFiles = [
  join("records", "addon", "build", "Release", "event_scan.node"),
  join("gateway", "http", "addon", "build", "Release", "connection_id.node"),
];

const documents = ["LICENSE", "README.md", "docs"];

const runner = createRunner({ noteGroups });

async function bundle(target, { withParquet }) {
  if (target === undefined)
    throw new UsageError("usage: npm run bundle -- <new folder> [--parquet]");
  // npm runs scripts in the project, wherever it was called.
  const folder = resolve(process.env.INIT_CWD ?? ".", target);
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new SetupError(`${folder} is there and not empty`);
  requireNode();
  const giveBack = await takeLock(runner);
  // Appears whole or not at all.
  const next = `${folder}.next-${process.pid}`;
  try {
    await buildAll();
    if (withParquet) await bringDuckdb(runner);
    mkdirSync(dirname(folder), { recursive: true });
    await fill(next);
    if (withParquet) copyDuckdb(next);
    await packConsumer(runner, next);
    renameSync(next, folder);
  } finally {
    rmSync(next, { recursive: true, force: true });
    giveBack();
  }
  process.stdout.write(`bundle: ${folder}\n`);
}

async function buildAll() {
  requirePrograms();
  await installPackages(runner);
  await runner.together([...addonBuilds(runner), () => buildDist(runner)], compilersMax());
  // Penstock works without them, only more slowly; a deployment should be fast.
  const [notBuilt] = addonsNotBuilt();
  if (notBuilt !== undefined)
    throw new SetupError(`the ${notBuilt.name} did not build: see ${notBuilt.log}`);
}

async function fill(folder) {
  cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true, filter: isForRunning });
  for (const file of addonFiles) cpSync(join(root, "src", file), join(folder, "dist", file));
  for (const { place, bin = {} } of runtimePackages()) {
    cpSync(join(root, place), join(folder, place), { recursive: true, filter: isForRunning });
    // Without them npm would fetch the package again.
    for (const [name, file] of Object.entries(bin)) linkCommand(join(folder, place), name, file);
  }
  await copyServedScripts(join(folder, "posthog-js"));
  for (const name of documents) cpSync(join(root, name), join(folder, name), { recursive: true });
  const { name, version, license, type, dependencies } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  );
  // With its dependencies: npm removes what package.json does not list, whatever it installs.
  const manifest = { name, version, license, private: true, type, dependencies };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  mkdirSync(join(folder, "bin"));
  copyFileSync(realpathSync(runtimeNode()), join(folder, "bin", "node"));
  const command = join(folder, "bin", "penstock");
  writeFileSync(command, launcher);
  chmodSync(command, 0o755);
}

/** Next to the other packages, which npm may install again. */
function copyDuckdb(folder) {
  const place = join("duckdb", "node_modules");
  cpSync(join(cacheDir, place), join(folder, place), { recursive: true, filter: isForRunning });
}

/** The folders of the packages that the gateway imports, and of their dependencies. */
function runtimePackages() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  return [...placesFor(packages, "", ["dependencies"])]
    .filter((place) => existsSync(join(root, place)))
    .map((place) => ({ place, bin: packages[place].bin }));
}

function linkCommand(packageFolder, name, file) {
  const commands = join(
    packageFolder.replace(/(?<=\bnode_modules)[\\/](@[^\\/]+[\\/])?[^\\/]+$/, ""),
    ".bin",
  );
  mkdirSync(commands, { recursive: true });
  symlinkSync(relative(commands, join(packageFolder, file)), join(commands, name));
}

/**
 * The files that a gateway in the project serves, so that one in production does too; the rest of
 * the package is for bundlers.
 */
async function copyServedScripts(folder) {
  const { readStaticFiles } = await import(
    pathToFileURL(join(root, "dist", "gateway", "http", "pages", "static-files.js")).href
  );
  const from = join(modulesDir, "posthog-js");
  for (const name of ["LICENSE", "package.json"]) cpSync(join(from, name), join(folder, name));
  for (const name of readStaticFiles(from).names)
    cpSync(join(from, "dist", name), join(folder, "dist", name));
}

/**
 * Excludes types, source maps, and the binaries of uWebSockets.js for every other platform and
 * Node.
 */
function isForRunning(file) {
  const isOther =
    /\buws_\w+\.node$/.test(file) &&
    !file.endsWith(`uws_${process.platform}_${process.arch}_127.node`);
  return !isOther && !/\.(map|[cm]?ts|tsbuildinfo)$/.test(file);
}

const launcher = `#!/bin/sh
# Penstock on the Node it was built for.
bin=$(dirname "$(readlink -f "$0")")
case "$1" in
  sink) flags=${sinkFlag} ;;
  up | serve) flags=${gatewayFlag} ;;
  *) flags= ;;
esac
exec "$bin/node" $flags "$bin/../dist/main.js" "$@"
`;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
try {
  const withParquet = process.argv.includes("--parquet");
  const [target] = process.argv.slice(2).filter((one) => one !== "--parquet");
  await bundle(target, { withParquet });
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`bundle: ${error.message}\n`);
  process.exitCode = exitCodeOf(error);
}
const signal = runner.interruptedBy();
if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
