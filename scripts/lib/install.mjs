// The steps that bring node_modules and dist/ up to date. Each is skipped when its stamp matches
// its inputs, and leaves what was there before untouched or clearly unfinished when it is
// interrupted.

import { chmodSync, cpSync, existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  announce,
  cacheDir,
  hostEnvironment,
  modulesDir,
  root,
  runtimeNode,
  SetupError,
  versionOf,
} from "./project.mjs";
import { filesUnder, keyOf, removeStamp, stampIs, writeStamp } from "./stamps.mjs";

const distDir = join(root, "dist");

function packagesKey() {
  return keyOf([join(root, "package-lock.json")], [process.platform, process.arch]);
}

/**
 * True when npm's own record says that everything the lock file asks of this platform is in
 * node_modules.
 */
function isInstalled() {
  try {
    const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
    const found = JSON.parse(readFileSync(join(modulesDir, ".package-lock.json"), "utf8")).packages;
    return Object.entries(wanted).every(([path, row]) => {
      if (path === "") return true;
      // Optional packages of other platforms are in the lock file and not in the folder.
      if (found[path] === undefined) return row.optional === true || row.devOptional === true;
      return found[path].version === row.version && existsSync(join(root, path, "package.json"));
    });
  } catch {
    return false;
  }
}

export function arePackagesCurrent() {
  return stampIs("packages", packagesKey()) && existsSync(join(modulesDir, ".package-lock.json"));
}

export async function installPackages(runner) {
  if (arePackagesCurrent()) return;
  removeStamp("packages");
  if (!isInstalled()) {
    announce("installing packages (npm ci)");
    const args = [
      "ci",
      "--include=dev",
      "--include=optional",
      "--engine-strict=false",
      "--no-audit",
      "--no-fund",
    ];
    // npm's own pauses before it tries again come to more than a minute, in which it says nothing.
    const tries = [
      "--fetch-retries=1",
      "--fetch-retry-mintimeout=500",
      "--fetch-retry-maxtimeout=1000",
    ];
    const patience = ["--fetch-timeout=60000", "--loglevel=error"];
    const { ok, said } = await runner.run("npm", [...args, ...tries, ...patience], {
      env: hostEnvironment(),
    });
    if (!ok)
      throw new SetupError(
        `${said}npm ci failed: ${isUnreachable(said) ? unreachable : "see above"}`,
      );
  }
  const version = versionOf(runtimeNode(), /^v(\d+)\.(\d+)\.(\d+)/);
  if (version?.[0] !== 22) {
    throw new SetupError(
      `Node 22 was installed but does not run on this host: ${runtimeNode()} --version`,
    );
  }
  writeStamp("packages", packagesKey());
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
  "  without any network: bring a checkout that is set up, or a bundle (npm run bundle), from another machine",
].join("\n");

function distKey() {
  const configs = ["tsconfig.json", "tsconfig.build.json"].map((name) => join(root, name));
  const compiler = join(modulesDir, "typescript", "package.json");
  const sources = filesUnder(join(root, "src"), (name) => /\.(ts|html|css|js)$/.test(name));
  return keyOf([...sources, ...configs, compiler], []);
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
  const args = ["-p", "tsconfig.build.json", "--outDir", next, "--sourceRoot", sources];
  const { ok, said } = await runner.run(runtimeNode(), [compiler, ...args]);
  if (!ok) throw new SetupError(`${said}the TypeScript sources do not compile: see above`);
  chmodSync(join(next, "main.js"), 0o755);
  // The live page goes to browsers as it is.
  cpSync(join(root, "src", "admin", "live", "page"), join(next, "admin", "live", "page"), {
    recursive: true,
  });
  const last = join(cacheDir, "dist-last");
  rmSync(last, { recursive: true, force: true });
  if (existsSync(distDir)) renameSync(distDir, last);
  renameSync(next, distDir);
  rmSync(last, { recursive: true, force: true });
  writeStamp("dist", key);
}
