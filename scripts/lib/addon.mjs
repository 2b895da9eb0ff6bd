// Builds the addons.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
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
    without: "client addresses are read with every request, which is slower",
    packages: [],
    unhurried: true,
  },
];

const addons = rows
  .map((row) => ({ ...row, dir: join(root, row.folder), log: join(logsDir, `${row.step}.log`) }))
  .filter((addon) => existsSync(join(addon.dir, "binding.gyp")));

/** Returns the addons whose build is missing or older than the sources. */
export function addonsNotBuilt() {
  return addons.filter((addon) => !isCurrent(addon));
}

/**
 * Returns the build steps, longest first. A failed build is reported by the commands that need the
 * addon.
 */
export function addonBuilds(runner) {
  return addonsNotBuilt().map((addon) => () => buildAddon(addon, runner));
}

function isCurrent(addon) {
  if (!addon.packages.every((name) => existsSync(join(modulesDir, name)))) return false;
  return stampIs(addon.step, keyFor(addon)) && builtIn(addon.dir).length > 0;
}

function keyFor({ dir, packages }) {
  const manifests = packages.map((name) => join(modulesDir, name, "package.json"));
  const node = join(pinnedNodeDir(), "package.json");
  const isPinned = existsSync(node);
  const inputs = [...manifests, ...(isPinned ? [node] : [])];
  const texts = [process.arch, ...(isPinned ? [] : [process.version])];
  return keyOf([...filesUnder(dir, (name) => /\.(gyp|gypi|cc|h)$/.test(name)), ...inputs], texts);
}

async function buildAddon(addon, runner) {
  removeStamp(addon.step);
  announce(`building the ${addon.name}`);
  // Computes the key before the build, so that a source that is edited during the build causes
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
    ...[gyp, "rebuild", "--directory", addon.dir, `--jobs=${compilersMax()}`],
    ...(shipped ? [`--nodedir=${nodedir}`] : []),
  ];
  return runner.run(runtimeNode(), args, {
    env: { ...env, ...(shipped ? { npm_config_nodedir: nodedir } : {}) },
    unhurried: addon.unhurried,
  });
}

/** Maximum number of concurrent compilers, each of which may take 400 MB. */
export function compilersMax() {
  return Math.max(1, Math.min(cpus().length, Math.floor(freemem() / 400e6)));
}

function builtIn(folder) {
  return listOf(join(folder, "build", "Release")).filter((name) => name.endsWith(".node"));
}

/** Returns the compiler's first error, or else the first error of node-gyp. */
function reasonIn(said) {
  const lines = said.split("\n").map((line) => line.trim());
  const line =
    lines.find((text) => /\berror:/.test(text)) ??
    lines.find((text) => text.startsWith("gyp ERR! stack")) ??
    lines.findLast((text) => text !== "");
  return line?.replace(/^gyp ERR! stack (Error: )?/, "") ?? "node-gyp said nothing";
}
