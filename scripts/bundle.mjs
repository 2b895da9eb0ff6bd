// Copies what running Penstock needs into a new folder: dist/ with the addons, the imported
// packages, the served scripts, the documents, and the pinned Node. nats-server is not included.

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
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { addonBuilds, addonsNotBuilt, compilersMax } from "./lib/addon.mjs";
import { packConsumer } from "./lib/consumer-package.mjs";
import { bringDuckdb } from "./lib/duckdb.mjs";
import { buildDist, installPackages } from "./lib/install.mjs";
import { takeLock } from "./lib/lock.mjs";
import { gatewayFlag, sinkFlag } from "./lib/node-flags.mjs";
import { placesFor } from "./lib/packages.mjs";
import { requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import { cacheDir, modulesDir, root, runtimeNode, SetupError, UsageError } from "./lib/project.mjs";
import { runProgram } from "./lib/runner.mjs";

const addonFiles = [
  join("records", "addon", "build", "Release", "event_scan.node"),
  join("gateway", "http", "addon", "build", "Release", "connection_id.node"),
];

const documents = ["LICENSE", "README.md", "docs"];

async function bundle(runner) {
  const withParquet = process.argv.includes("--parquet");
  const [target] = process.argv.slice(2).filter((one) => one !== "--parquet");
  if (target === undefined)
    throw new UsageError("usage: npm run bundle -- <new folder> [--parquet]");
  // npm runs scripts in the project, wherever it was called.
  const folder = resolve(process.env.INIT_CWD ?? ".", target);
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new SetupError(`${folder} is there and not empty`);
  requireNode();
  const giveBack = await takeLock(runner);
  // Builds the folder under another name, so that it appears complete or not at all.
  const next = `${folder}.next-${process.pid}`;
  try {
    await buildAll(runner);
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

async function buildAll(runner) {
  requirePrograms();
  await installPackages(runner);
  await runner.together([...addonBuilds(runner), () => buildDist(runner)], compilersMax());
  // Penstock also starts without the connection addon, but is slower.
  const [notBuilt] = addonsNotBuilt();
  if (notBuilt !== undefined)
    throw new SetupError(`the ${notBuilt.name} did not build: see ${notBuilt.log}`);
}

async function fill(folder) {
  cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true, filter: isForRunning });
  for (const file of addonFiles) cpSync(join(root, "src", file), join(folder, "dist", file));
  for (const { place, bin = {} } of runtimePackages()) {
    cpSync(join(root, place), join(folder, place), { recursive: true, filter: isForRunning });
    // Creates the links of commands. Without them npm fetches the package again.
    for (const [name, file] of Object.entries(bin)) linkCommand(join(folder, place), name, file);
  }
  await copyServedScripts(join(folder, "posthog-js"));
  for (const name of documents) cpSync(join(root, name), join(folder, name), { recursive: true });
  const { name, version, license, type, dependencies } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  );
  // npm removes packages that package.json does not list.
  const manifest = { name, version, license, private: true, type, dependencies };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  mkdirSync(join(folder, "bin"));
  copyFileSync(realpathSync(runtimeNode()), join(folder, "bin", "node"));
  const command = join(folder, "bin", "penstock");
  writeFileSync(command, launcher);
  chmodSync(command, 0o755);
}

function copyDuckdb(folder) {
  const place = join("duckdb", "node_modules");
  cpSync(join(cacheDir, place), join(folder, place), { recursive: true, filter: isForRunning });
}

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

/** Copies the served scripts. The rest of the package is for bundlers. */
async function copyServedScripts(folder) {
  const { readStaticFiles } = await import(
    pathToFileURL(join(root, "dist", "gateway", "http", "pages", "static-files.js")).href
  );
  const from = join(modulesDir, "posthog-js");
  for (const name of ["LICENSE", "package.json"]) cpSync(join(from, name), join(folder, name));
  for (const name of readStaticFiles(from).names)
    cpSync(join(from, "dist", name), join(folder, "dist", name));
}

/** Returns whether a file is needed: not types, source maps, or binaries for other platforms. */
function isForRunning(file) {
  const isOther =
    /\buws_\w+\.node$/.test(file) &&
    !file.endsWith(`uws_${process.platform}_${process.arch}_127.node`);
  return !isOther && !/\.(map|[cm]?ts|tsbuildinfo)$/.test(file);
}

const launcher = `#!/bin/sh
# Penstock on the Node it was built for.
file=$(readlink -f "$0")
bin=\${file%/*}
case "$1" in
  sink) flags=${sinkFlag} ;;
  up | serve) flags=${gatewayFlag} ;;
  *) flags= ;;
esac
exec "$bin/node" $flags "$bin/../dist/main.js" "$@"
`;

await runProgram(bundle, (message) => process.stderr.write(`bundle: ${message}\n`));
