// The steps that bring node_modules, the native addon and dist/ up to date. Each is skipped when its stamp matches its
// inputs, and leaves what was there before untouched or clearly unfinished when it is interrupted.

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  announce,
  cacheDir,
  hostEnvironment,
  modulesDir,
  pinnedNodeDir,
  root,
  runtimeNode,
  SetupError,
  versionOf,
} from "./project.mjs";
import { filesUnder, keyOf, removeStamp, stampIs, writeStamp } from "./stamps.mjs";

const addonDir = join(root, "src", "scan", "addon");
const distDir = join(root, "dist");
const logsDir = join(cacheDir, "logs");
export const addonLog = join(logsDir, "addon.log");

/** Runs a program quietly; answers its exit status and all it said. */
function run(program, args, env) {
  const done = spawnSync(program, args, { cwd: root, env, encoding: "utf8", maxBuffer: 64 * 1_048_576 });
  const said = done.error === undefined ? `${done.stdout}${done.stderr}` : `${done.error.message}\n`;
  return { ok: done.status === 0, said };
}

function packagesKey() {
  return keyOf([join(root, "package-lock.json")], [process.platform, process.arch]);
}

/** True when npm's own record says that everything the lock file asks of this platform is in node_modules. */
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

export function installPackages() {
  if (arePackagesCurrent()) return;
  removeStamp("packages");
  if (!isInstalled()) {
    announce("installing packages (npm ci)");
    const args = ["ci", "--include=dev", "--include=optional", "--engine-strict=false", "--no-audit", "--no-fund"];
    const { ok, said } = run("npm", [...args, "--loglevel=error"], hostEnvironment());
    if (!ok) throw new SetupError(`${said}npm ci failed: see above`);
  }
  const version = versionOf(runtimeNode(), /^v(\d+)\.(\d+)\.(\d+)/);
  if (version?.[0] !== 22) {
    throw new SetupError(`Node 22 was installed but does not run on this host: ${runtimeNode()} --version`);
  }
  writeStamp("packages", packagesKey());
}

function addonKey() {
  const simdjson = join(modulesDir, "@nozbe", "simdjson", "package.json");
  const node = join(pinnedNodeDir(), "package.json");
  const inputs = [simdjson, ...(existsSync(node) ? [node] : [])];
  return keyOf([...filesUnder(addonDir, (name) => /\.(gyp|gypi|cc|h)$/.test(name)), ...inputs], [process.arch]);
}

export function isAddonCurrent() {
  if (!existsSync(join(modulesDir, "@nozbe", "simdjson"))) return false;
  const release = join(addonDir, "build", "Release");
  return (
    stampIs("addon", addonKey()) && existsSync(release) && readdirSync(release).some((name) => name.endsWith(".node"))
  );
}

/** Builds the native scanner. A failure is told and is not fatal: the gateway has a scanner in JavaScript. */
export function buildAddon() {
  if (isAddonCurrent()) return;
  removeStamp("addon");
  announce("building the native scanner");
  // Taken before the build: a source edited while it runs makes the next set-up build again.
  const key = addonKey();
  const nodedir = pinnedNodeDir();
  const gyp = join(modulesDir, "node-gyp", "bin", "node-gyp.js");
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name.toLowerCase() !== "npm_config_nodedir"),
  );
  const shipped = existsSync(join(nodedir, "include"));
  const { ok, said } = run(
    runtimeNode(),
    [gyp, "rebuild", "--directory", addonDir, ...(shipped ? [`--nodedir=${nodedir}`] : [])],
    { ...env, ...(shipped ? { npm_config_nodedir: nodedir } : {}) },
  );
  mkdirSync(logsDir, { recursive: true });
  writeFileSync(addonLog, said);
  if (ok) writeStamp("addon", key);
  else
    announce(`WARNING: the native scanner was not built, the slow one in JavaScript is used instead; log: ${addonLog}`);
}

function distKey() {
  const configs = ["tsconfig.json", "tsconfig.build.json"].map((name) => join(root, name));
  const compiler = join(modulesDir, "typescript", "package.json");
  return keyOf([...filesUnder(join(root, "src"), (name) => name.endsWith(".ts")), ...configs, compiler], []);
}

export function isDistCurrent() {
  return (
    existsSync(join(modulesDir, "typescript")) && stampIs("dist", distKey()) && existsSync(join(distDir, "main.js"))
  );
}

export function buildDist() {
  if (isDistCurrent()) return;
  removeStamp("dist");
  announce("compiling TypeScript");
  const key = distKey();
  const next = join(cacheDir, "dist-next");
  rmSync(next, { recursive: true, force: true });
  const compiler = join(modulesDir, "typescript", "bin", "tsc");
  const sources = pathToFileURL(`${join(root, "src")}/`).href;
  const args = ["-p", "tsconfig.build.json", "--outDir", next, "--sourceRoot", sources];
  const { ok, said } = run(runtimeNode(), [compiler, ...args], process.env);
  if (!ok) throw new SetupError(`${said}the TypeScript sources do not compile: see above`);
  chmodSync(join(next, "main.js"), 0o755);
  const last = join(cacheDir, "dist-last");
  rmSync(last, { recursive: true, force: true });
  if (existsSync(distDir)) renameSync(distDir, last);
  renameSync(next, distDir);
  rmSync(last, { recursive: true, force: true });
  writeStamp("dist", key);
}
