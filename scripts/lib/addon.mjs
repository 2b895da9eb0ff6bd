// Builds the addons, for this machine or, in copies of their folders, for another processor.

import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { cpus, freemem } from "node:os";
import { join } from "node:path";
import {
  announce,
  cacheDir,
  listOf,
  modulesDir,
  pinnedNodeDir,
  root,
  runtimeNode,
  SetupError,
} from "./project.mjs";
import { filesUnder, keyOf, removeStamp, stampIs, writeStamp } from "./stamps.mjs";

const logsDir = join(cacheDir, "logs");

/** `unhurried` addons compile so quickly that they are built at low priority. */
const rows = [
  {
    step: "scan-addon",
    folder: join("src", "records", "addon"),
    name: "native scanner",
    without: "without it Penstock does not start",
    packages: ["@nozbe/simdjson"],
    unhurried: false,
  },
  {
    step: "http-addon",
    folder: join("src", "gateway", "http", "addon"),
    name: "connection addon",
    without: "without it the gateway does not start",
    packages: [],
    unhurried: true,
  },
];

const native = { arch: process.arch, base: root, suffix: "" };

function addonsFor({ arch, base, suffix, compiler }) {
  return rows
    .filter(({ folder }) => existsSync(join(root, folder, "binding.gyp")))
    .map((row) => {
      const [dir, step] = [join(base, row.folder), `${row.step}${suffix}`];
      const [source, log] = [join(root, row.folder), join(logsDir, `${step}.log`)];
      return { ...row, arch, compiler, source, dir, step, log };
    });
}

const addons = addonsFor(native);

export function addonsNotBuilt() {
  return addons.filter((addon) => !isCurrent(addon));
}

/** Longest first. A failed build is reported by the commands that need the addon. */
export function addonBuilds(runner) {
  return addonsNotBuilt().map((addon) => () => buildAddon(addon, runner));
}

/** Builds the addons for `arch` with a cross compiler. Returns the paths of all. */
export async function crossBuild(runner, { arch, compiler }) {
  const base = join(cacheDir, `addons-${arch}`);
  const crossed = addonsFor({ arch, base, suffix: `-${arch}`, compiler });
  if (!crossed.every(isCurrent)) {
    rmSync(base, { recursive: true, force: true });
    for (const { folder } of rows)
      cpSync(join(root, folder), join(base, folder), {
        recursive: true,
        filter: (file) => !/[\\/]build$/.test(file),
      });
    symlinkSync(modulesDir, join(base, "node_modules"));
    await runner.together(
      crossed.map((addon) => () => buildAddon(addon, runner)),
      compilersMax(),
    );
    const failed = crossed.find((addon) => !isCurrent(addon));
    if (failed !== undefined)
      throw new SetupError(`the ${failed.name} for ${arch} did not build: see ${failed.log}`);
  }
  return crossed.flatMap(({ dir }) => builtIn(dir));
}

export function builtAddons() {
  return addons.flatMap(({ dir }) => builtIn(dir));
}

function isCurrent(addon) {
  if (!addon.packages.every((name) => existsSync(join(modulesDir, name)))) return false;
  return stampIs(addon.step, keyFor(addon)) && builtIn(addon.dir).length > 0;
}

function keyFor({ source, packages, arch, compiler }) {
  const manifests = packages.map((name) => join(modulesDir, name, "package.json"));
  const node = join(pinnedNodeDir(), "package.json");
  const isPinned = existsSync(node);
  const inputs = [...manifests, ...(isPinned ? [node] : [])];
  const texts = [arch, compiler ?? "", ...(isPinned ? [] : [process.version])].filter(Boolean);
  return keyOf(
    [...filesUnder(source, (name) => /\.(gyp|gypi|cc|h)$/.test(name)), ...inputs],
    texts,
  );
}

async function buildAddon(addon, runner) {
  removeStamp(addon.step);
  announce(`building the ${addon.name}`);
  // The key is computed before the build, so that a source that is edited during the build causes
  // another build.
  const key = keyFor(addon);
  const { ok, said } = await build(addon, runner);
  mkdirSync(logsDir, { recursive: true });
  writeFileSync(addon.log, said);
  if (ok) return writeStamp(addon.step, key);
  announce(`WARNING: the ${addon.name} was not built, ${addon.without}`);
  announce(`  why: ${reasonIn(said)}`);
  announce(`  log: ${addon.log}`);
}

function build(addon, runner) {
  const nodedir = pinnedNodeDir();
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => name.toLowerCase() !== "npm_config_nodedir"),
  );
  const shipped = existsSync(join(nodedir, "include"));
  const gyp = join(modulesDir, "node-gyp", "bin", "node-gyp.js");
  const args = [
    gyp,
    "rebuild",
    "--directory",
    addon.dir,
    `--jobs=${compilersMax()}`,
    ...(shipped ? [`--nodedir=${nodedir}`] : []),
    `--arch=${addon.arch}`,
  ];
  const tools = addon.compiler === undefined ? {} : { CXX: addon.compiler, LINK: addon.compiler };
  return runner.run(runtimeNode(), args, {
    env: { ...env, ...tools, ...(shipped ? { npm_config_nodedir: nodedir } : {}) },
    unhurried: addon.unhurried,
  });
}

/** Each compiler may take 400 MB. */
export function compilersMax() {
  return Math.max(1, Math.min(cpus().length, Math.floor(freemem() / 400e6)));
}

function builtIn(folder) {
  const built = join(folder, "build", "Release");
  return listOf(built)
    .filter((name) => name.endsWith(".node"))
    .map((name) => join(built, name));
}

function reasonIn(said) {
  const lines = said.split("\n").map((line) => line.trim());
  const line =
    lines.find((text) => /\berror:/.test(text)) ??
    lines.find((text) => text.startsWith("gyp ERR! stack")) ??
    lines.findLast((text) => text !== "");
  return line?.replace(/^gyp ERR! stack (Error: )?/, "") ?? "node-gyp said nothing";
}
