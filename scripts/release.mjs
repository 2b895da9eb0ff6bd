// Writes the npm packages into a new folder, with checksums and an SBOM. The package penstock
// contains all its packages and also runs where it is unpacked, without npm.

import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import {
  addonBuilds,
  addonsNotBuilt,
  builtAddons,
  compilersMax,
  crossBuild,
} from "./lib/addon.mjs";
import { buildDist, installPackages } from "./lib/install.mjs";
import { takeLock } from "./lib/lock.mjs";
import { licencesText, sbomOf } from "./lib/notices.mjs";
import { placesFor } from "./lib/packages.mjs";
import { findOnPath, requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import {
  cacheDir,
  hostEnvironment,
  modulesDir,
  root,
  SetupError,
  UsageError,
} from "./lib/project.mjs";
import { reachedFrom } from "./lib/reached-files.mjs";
import { runProgram } from "./lib/runner.mjs";

const ownManifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const lockedPackages = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
const { version, license } = ownManifest;
const common = { version, license, type: "module" };

const crossCompiler = "aarch64-linux-gnu-g++";
const uwsPlatforms = ["linux_x64", "linux_arm64", "darwin_x64", "darwin_arm64"];
/** The version of Node's binary interface for which uWebSockets.js has binaries. */
const nodeAbi = 127;
const sourcePackages = ["@nozbe/simdjson"];
const addonFolders = [join("src", "records", "addon"), join("src", "gateway", "http", "addon")];
const installedScripts = ["scripts/install.mjs", "scripts/nats-server.mjs"];

async function release(runner) {
  const usage = "usage: npm run release -- <new folder> [--host-only]";
  const words = process.argv.slice(2);
  const hostOnly = words.includes("--host-only");
  const [target, ...unknown] = words.filter((one) => one !== "--host-only");
  if (target === undefined) throw new UsageError(usage);
  const wrong = [target, ...unknown].find((one) => one.startsWith("-")) ?? unknown[0];
  if (wrong !== undefined) throw new UsageError(`release: unknown argument "${wrong}"; ${usage}`);
  // npm runs scripts in the project, even if it was called in another folder.
  const folder = resolve(process.env.INIT_CWD ?? ".", target);
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new SetupError(`${folder} exists and is not empty: name a new folder`);
  requireNode();
  if (!hostOnly) requireCrossCompiler();
  const giveBack = await takeLock(runner);
  // Builds the folder under another name, so that it appears complete or not at all.
  const next = `${folder}.next-${process.pid}`;
  const work = join(cacheDir, `release-${process.pid}`);
  try {
    const prebuilt = await buildAll(runner, { hostOnly });
    mkdirSync(next, { recursive: true });
    await fillGateway(join(work, "penstock"), prebuilt, { hostOnly, runner });
    fillConsumer(join(work, "consumer"));
    fillTesting(join(work, "testing"));
    for (const name of ["penstock", "consumer", "testing"])
      await npm(runner, ["pack", join(work, name), "--pack-destination", next]);
    const sbom = await sbomOf(join(work, "penstock"), (args, cwd) => npm(runner, args, cwd));
    writeFileSync(join(next, `penstock-${version}.cdx.json`), sbom);
    writeFileSync(join(next, "SHA256SUMS"), checksums(next));
    renameSync(next, folder);
  } finally {
    for (const one of [next, work]) rmSync(one, { recursive: true, force: true });
    giveBack();
  }
  process.stdout.write(`${readFileSync(join(folder, "SHA256SUMS"), "utf8")}`);
}

function requireCrossCompiler() {
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new SetupError(
      `a release is written on linux-x64, and this is ${process.platform}-${process.arch}: use --host-only for a package with addons for this platform alone`,
    );
  if (findOnPath(crossCompiler) === undefined)
    throw new SetupError(
      `${crossCompiler} is missing, which builds the addons for arm64\n  Debian, Ubuntu:  sudo apt-get install g++-aarch64-linux-gnu\n  or use --host-only for a package without them`,
    );
}

async function buildAll(runner, { hostOnly }) {
  requirePrograms();
  await installPackages(runner);
  await runner.together([...addonBuilds(runner), () => buildDist(runner)], compilersMax());
  const [notBuilt] = addonsNotBuilt();
  if (notBuilt !== undefined)
    throw new SetupError(`the ${notBuilt.name} did not build: see ${notBuilt.log}`);
  const prebuilt = { [`${process.platform}-${process.arch}`]: builtAddons() };
  if (!hostOnly)
    prebuilt["linux-arm64"] = await crossBuild(runner, { arch: "arm64", compiler: crossCompiler });
  return prebuilt;
}

async function fillGateway(folder, prebuilt, { hostOnly, runner }) {
  const copy = (place, filter = isForRunning) =>
    cpSync(join(root, place), join(folder, place), { recursive: true, filter });
  for (const place of ["dist", "docs", "LICENSE", "README.md"]) copy(place);
  for (const place of addonFolders) copy(place, (file) => !/[\\/]build$/.test(file));
  for (const place of reachedFrom(installedScripts).files) copy(place);
  for (const place of gatewayPackages()) copy(place);
  for (const [platform, files] of Object.entries(prebuilt))
    for (const file of files) cpSync(file, join(folder, "prebuilt", platform, basename(file)));
  const uwsFolder = join("node_modules", "uWebSockets.js", "dist", "bin");
  const uwsOfHost = join(uwsFolder, `uws_${process.platform}_${process.arch}_${nodeAbi}.node`);
  if (hostOnly) cpSync(join(root, uwsOfHost), join(folder, uwsOfHost));
  else await copyUws(join(folder, uwsFolder), runner);
  await copyServedScripts(join(folder, "posthog-js"));
  const dependencies = {
    ...ownManifest.dependencies,
    ...Object.fromEntries(sourcePackages.map((one) => [one, ownManifest.devDependencies[one]])),
  };
  writeManifest(folder, {
    name: "penstock",
    description: ownManifest.description,
    ...common,
    engines: { node: ">=18" },
    os: hostOnly ? [process.platform] : ["linux", "darwin"],
    cpu: hostOnly ? [process.arch] : ["x64", "arm64"],
    bin: { penstock: "bin/penstock" },
    exports: { "./package.json": "./package.json" },
    scripts: { install: "node scripts/install.mjs" },
    dependencies,
    bundleDependencies: Object.keys(dependencies),
    /** If npm runs on another Node, `scripts/install.mjs` fetches this one. */
    pinnedNode: ownManifest.optionalDependencies,
  });
  writeFileSync(join(folder, "THIRD-PARTY-LICENSES"), licencesText(folder));
  const command = join(folder, "bin", "penstock");
  mkdirSync(dirname(command));
  copyFileSync(join(root, "scripts", "launch.sh"), command);
  chmodSync(command, 0o755);
}

function gatewayPackages() {
  const places = [...placesFor(lockedPackages, "", ["dependencies"])].filter((place) =>
    existsSync(join(root, place)),
  );
  return [...places, ...sourcePackages.map((name) => `node_modules/${name}`)].sort();
}

function fillConsumer(folder) {
  const entry = "dist/readers/consumer/consume";
  const { files, packages } = reachedFrom([`${entry}.js`, `${entry}.d.ts`]);
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    copyFileSync(join(root, file), join(folder, file));
  }
  for (const name of ["LICENSE", "packages/consumer/README.md"])
    copyFileSync(join(root, name), join(folder, basename(name)));
  writeManifest(folder, {
    name: "@penstock/consumer",
    description: "Reads the events that Penstock has stored in NATS JetStream.",
    ...common,
    engines: { node: ">=20" },
    exports: { types: `./${entry}.d.ts`, default: `./${entry}.js` },
    dependencies: Object.fromEntries(packages.map((one) => [one, ownManifest.dependencies[one]])),
  });
}

function fillTesting(folder) {
  cpSync(join(root, "packages", "testing"), folder, { recursive: true });
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  writeManifest(folder, {
    name: "@penstock/testing",
    description:
      "Awaits stored events in the tests of an app: starts Penstock with an empty store.",
    ...common,
    engines: { node: ">=18" },
    exports: { types: "./index.d.cts", default: "./index.cjs" },
    // The same version, because both use /testing of the admin port.
    dependencies: { penstock: version },
  });
}

function writeManifest(folder, manifest) {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Set-up retains only the binary of its own platform. */
async function copyUws(folder, runner) {
  const { name, version: locked, integrity } = lockedPackages["node_modules/uWebSockets.js"];
  const cached = join(cacheDir, `${name}-${locked}`);
  if (!existsSync(cached)) {
    const next = `${cached}.next`;
    rmSync(next, { recursive: true, force: true });
    mkdirSync(next, { recursive: true });
    await npm(runner, ["pack", `${name}@${locked}`, "--pack-destination", next]);
    const file = join(next, `${name}-${locked}.tgz`);
    const [kind, sum] = integrity.split(/-(.*)/s);
    if (createHash(kind).update(readFileSync(file)).digest("base64") !== sum)
      throw new SetupError(`${name}@${locked} from the registry is not the one of the lock file`);
    const inside = uwsPlatforms.map((one) => `package/dist/bin/uws_${one}_${nodeAbi}.node`);
    const args = ["-xzf", file, "-C", next, "--strip-components=3", ...inside];
    const { ok, said } = await runner.run("tar", args);
    if (!ok) throw new SetupError(`${said}${file} cannot be unpacked: see above`);
    rmSync(file);
    renameSync(next, cached);
  }
  cpSync(cached, folder, { recursive: true });
}

/** The rest of the package is for bundlers. */
async function copyServedScripts(folder) {
  const { readStaticFiles } = await import(
    pathToFileURL(join(root, "dist", "gateway", "http", "pages", "static-files.js")).href
  );
  const from = join(modulesDir, "posthog-js");
  for (const name of ["LICENSE", "package.json"]) cpSync(join(from, name), join(folder, name));
  for (const name of readStaticFiles(from).names)
    cpSync(join(from, "dist", name), join(folder, "dist", name));
}

function isForRunning(file) {
  // Some packages contain their tests.
  if (/[\\/]node_modules[\\/].*[\\/](test|examples|benchmarks)$/.test(file)) return false;
  return !/\.(map|[cm]?ts|tsbuildinfo)$/.test(file) && !/\buws_\w+\.node$/.test(file);
}

async function npm(runner, args, cwd = root) {
  const flags = ["--prefer-offline", "--loglevel=error"];
  const { ok, said } = await runner.run("npm", [...args, ...flags], {
    cwd,
    env: hostEnvironment(),
  });
  if (!ok) throw new SetupError(`${said}npm ${args[0]} failed: see above`);
  return said;
}

function checksums(folder) {
  const lines = readdirSync(folder)
    .sort()
    .map((name) => {
      const sum = createHash("sha256")
        .update(readFileSync(join(folder, name)))
        .digest("hex");
      return `${sum}  ${name}\n`;
    });
  return lines.join("");
}

await runProgram(release, (message) => process.stderr.write(`release: ${message}\n`));
