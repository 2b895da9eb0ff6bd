// Brings node_modules and dist/ up to date. An interrupted step runs again.

import {
  chmodSync,
  cpSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { placesFor } from "./packages.mjs";
import {
  abiOf,
  announce,
  cacheDir,
  hostEnvironment,
  listOf,
  modulesDir,
  pinnedNodeDir,
  root,
  runtimeNode,
  SetupError,
  versionOf,
} from "./project.mjs";
import { filesUnder, keyOf, removeStamp, stampIs, writeStamp } from "./stamps.mjs";

const distDir = join(root, "dist");

const parts = {
  gateway: { stamp: "packages", flags: ["--workspaces=false"] },
  all: { stamp: "packages-tools", flags: [] },
};

function packagesKey() {
  return keyOf([join(root, "package-lock.json")], [process.platform, process.arch]);
}

function isInstalled(part) {
  try {
    const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
    const found = JSON.parse(readFileSync(join(modulesDir, ".package-lock.json"), "utf8")).packages;
    const places = placesFor(wanted, "", [
      "dependencies",
      "devDependencies",
      "optionalDependencies",
    ]);
    if (part === parts.all) {
      for (const place of placesFor(wanted, "test", ["devDependencies"])) places.add(place);
    }
    return [...places].every((place) => {
      const { version, optional, devOptional } = wanted[place];
      // Optional packages of other platforms may be missing.
      if (found[place] === undefined) return optional === true || devOptional === true;
      return found[place].version === version && existsSync(join(root, place, "package.json"));
    });
  } catch {
    return false;
  }
}

function isCurrent(part) {
  return stampIs(part.stamp, packagesKey()) && existsSync(join(modulesDir, ".package-lock.json"));
}

export function arePackagesCurrent({ withTools = false } = {}) {
  return isCurrent(parts.all) || (!withTools && isCurrent(parts.gateway));
}

export async function installPackages(runner, { withTools = false } = {}) {
  if (arePackagesCurrent({ withTools })) return;
  const part = withTools ? parts.all : parts.gateway;
  // Adds packages without removing any, because a running gateway may use the old packages.
  const isAdding = withTools && isCurrent(parts.gateway);
  removeStamp(part.stamp);
  if (!isInstalled(part)) await runNpm(runner, { ...part, isAdding });
  const version = versionOf(runtimeNode(), /^v(\d+)\.(\d+)\.(\d+)/);
  if (version?.[0] !== 22) {
    throw new SetupError(
      `Node 22 was installed but does not run on this host: ${runtimeNode()} --version`,
    );
  }
  dropOtherPlatforms();
  writeStamp(part.stamp, packagesKey());
}

async function runNpm(runner, { flags, isAdding }) {
  const command = isAdding ? ["install", "--no-save"] : ["ci"];
  announce(
    isAdding ? "installing the packages of tests and tools (npm)" : "installing packages (npm ci)",
  );
  const args = [...command, ...flags, "--include=dev", ...npmFlags];
  const { ok, said } = await runner.run("npm", args, { env: hostEnvironment() });
  if (!ok) throw npmFailed(command[0], said);
}

export const npmFlags = [
  "--include=optional",
  "--engine-strict=false",
  "--no-audit",
  "--no-fund",
  "--loglevel=error",
  // npm's own pauses between attempts add up to more than a minute without output.
  "--fetch-retries=1",
  "--fetch-retry-mintimeout=500",
  "--fetch-retry-maxtimeout=1000",
  "--fetch-timeout=60000",
];

export function npmFailed(command, said) {
  const why = isUnreachable(said) ? unreachable : "see above";
  return new SetupError(`${said}npm ${command} failed: ${why}`);
}

/** Binaries for other platforms and Nodes, and OpenSSL's headers, are 184 of 190 MB. */
function dropOtherPlatforms() {
  const abi = abiOf(runtimeNode());
  const own = `uws_${process.platform}_${process.arch}_${abi}.node`;
  const library = join(modulesDir, "uWebSockets.js");
  for (const folder of [library, join(library, "dist"), join(library, "dist", "bin")]) {
    const binaries = listOf(folder).filter((name) => /^uws_\w+\.node$/.test(name));
    if (!binaries.includes(own)) continue;
    for (const name of binaries) if (name !== own) rmSync(join(folder, name));
  }
  const headers = join(pinnedNodeDir(), "include", "node", "openssl");
  rmSync(headers, { recursive: true, force: true });
}

function isUnreachable(said) {
  return /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH)\b/.test(
    said,
  );
}

const unreachable = [
  "the package registry cannot be reached",
  "  connect this machine to the network and run this again: the first set-up fetches packages",
  "  behind a proxy or with a mirror: npm config set proxy http://…, npm config set registry https://…",
  "  without any network: bring a checkout that is set up, or the packages (npm run release), from another machine",
].join("\n");

const distConfig = JSON.stringify({
  extends: "../tsconfig.json",
  compilerOptions: { noEmit: false, rootDir: "../src", sourceMap: true, declaration: true },
  include: ["../src"],
});

function distKey() {
  const compiler = join(modulesDir, "typescript", "package.json");
  const sources = filesUnder(join(root, "src"), (name) => /\.(ts|html|css|js)$/.test(name));
  return keyOf([...sources, join(root, "tsconfig.json"), compiler], [distConfig]);
}

export function isDistCurrent() {
  return (
    existsSync(join(modulesDir, "typescript")) &&
    stampIs("dist", distKey()) &&
    existsSync(join(distDir, "main.js"))
  );
}

export async function buildDist(runner) {
  if (isDistCurrent()) return;
  removeStamp("dist");
  announce("compiling TypeScript");
  const key = distKey();
  const next = join(cacheDir, "dist-next");
  rmSync(next, { recursive: true, force: true });
  const compiler = join(modulesDir, "typescript", "bin", "tsc");
  const sources = pathToFileURL(`${join(root, "src")}/`).href;
  const config = join(cacheDir, "tsconfig.dist.json");
  writeFileSync(config, distConfig);
  const args = ["-p", config, "--outDir", next, "--sourceRoot", sources];
  const { ok, said } = await runner.run(runtimeNode(), [compiler, ...args], {
    unhurried: true,
  });
  if (!ok) throw new SetupError(`${said}the TypeScript sources do not compile: see above`);
  chmodSync(join(next, "main.js"), 0o755);
  cpSync(join(root, "src", "live", "page"), join(next, "live", "page"), {
    recursive: true,
  });
  const last = join(cacheDir, "dist-last");
  rmSync(last, { recursive: true, force: true });
  if (existsSync(distDir)) renameSync(distDir, last);
  renameSync(next, distDir);
  rmSync(last, { recursive: true, force: true });
  writeStamp("dist", key);
}
