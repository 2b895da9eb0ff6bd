// Builds the native scanner where node-gyp can: make splits paths at spaces, and no quoting helps, so a tree at such a
// path is built in a copy elsewhere that reaches the packages through a link. A failure is told and is not fatal.

import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { announce, cacheDir, modulesDir, pinnedNodeDir, root, runtimeNode } from "./project.mjs";
import { filesUnder, keyOf, removeStamp, stampIs, writeStamp } from "./stamps.mjs";

const addonDir = join(root, "src", "scan", "addon");
const logsDir = join(cacheDir, "logs");
export const addonLog = join(logsDir, "addon.log");

function addonKey() {
  const simdjson = join(modulesDir, "@nozbe", "simdjson", "package.json");
  const node = join(pinnedNodeDir(), "package.json");
  const inputs = [simdjson, ...(existsSync(node) ? [node] : [])];
  return keyOf([...filesUnder(addonDir, (name) => /\.(gyp|gypi|cc|h)$/.test(name)), ...inputs], [process.arch]);
}

export function isAddonCurrent() {
  if (!existsSync(join(modulesDir, "@nozbe", "simdjson"))) return false;
  return stampIs("addon", addonKey()) && builtIn(addonDir).length > 0;
}

/** Builds what is not current. A failure is not fatal: the gateway has a scanner in JavaScript. */
export async function buildAddon(runner) {
  if (isAddonCurrent()) return;
  removeStamp("addon");
  announce("building the native scanner");
  // Taken before the build: a source edited while it runs makes the next set-up build again.
  const key = addonKey();
  const { ok, said } = isPlain(root) ? await buildIn(root, runner) : await buildElsewhere(runner);
  mkdirSync(logsDir, { recursive: true });
  writeFileSync(addonLog, said);
  if (ok) return writeStamp("addon", key);
  announce("WARNING: the native scanner was not built, the slow one in JavaScript is used instead");
  announce(`  why: ${reasonIn(said)}`);
  announce(`  log: ${addonLog}`);
}

/** True when make and the shell take the path as it is. */
function isPlain(path) {
  return !/[\s"'`$#%&;:=|()<>*?\\[\]{}!~]/.test(path);
}

async function buildElsewhere(runner) {
  const place = isPlain(tmpdir()) ? tmpdir() : "/tmp";
  const work = mkdtempSync(join(place, "penstock-addon-"));
  try {
    const copy = join(work, "src", "scan", "addon");
    cpSync(addonDir, copy, { recursive: true, filter: (path) => path !== join(addonDir, "build") });
    symlinkSync(modulesDir, join(work, "node_modules"));
    const result = await buildIn(work, runner);
    if (result.ok) takeOver(copy);
    return result;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function takeOver(copy) {
  const release = join(addonDir, "build", "Release");
  mkdirSync(release, { recursive: true });
  for (const name of builtIn(copy)) {
    // Copied beside its place and renamed: the two folders may be on different disks, and a running gateway may have
    // the old one loaded.
    copyFileSync(join(copy, "build", "Release", name), join(release, `${name}.next`));
    renameSync(join(release, `${name}.next`), join(release, name));
  }
}

/** Builds in a tree that has src/scan/addon and node_modules. */
function buildIn(tree, runner) {
  const modules = join(tree, "node_modules");
  const nodedir = pinnedNodeDir(modules);
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name.toLowerCase() !== "npm_config_nodedir"),
  );
  const shipped = existsSync(join(nodedir, "include"));
  // node-gyp writes its own path into the makefiles: the links keep it free of what the link points to.
  const links = tree === root ? [] : ["--preserve-symlinks", "--preserve-symlinks-main"];
  const gyp = join(modules, "node-gyp", "bin", "node-gyp.js");
  const directory = join(tree, "src", "scan", "addon");
  const args = [...links, gyp, "rebuild", "--directory", directory, ...(shipped ? [`--nodedir=${nodedir}`] : [])];
  return runner.run(runtimeNode(), args, { env: { ...env, ...(shipped ? { npm_config_nodedir: nodedir } : {}) } });
}

function builtIn(folder) {
  try {
    return readdirSync(join(folder, "build", "Release")).filter((name) => name.endsWith(".node"));
  } catch {
    return [];
  }
}

/** The line of a failed build that says most: the compiler's first error, else node-gyp's. */
function reasonIn(said) {
  const lines = said.split("\n").map((line) => line.trim());
  const line =
    lines.find((text) => /\berror:/.test(text)) ??
    lines.find((text) => text.startsWith("gyp ERR! stack")) ??
    lines.findLast((text) => text !== "");
  return line?.replace(/^gyp ERR! stack (Error: )?/, "") ?? "node-gyp said nothing";
}
