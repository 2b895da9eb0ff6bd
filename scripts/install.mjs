// Runs when npm installs the package penstock. Builds the addons if the package has none for this
// system, and fetches the pinned Node if npm runs on another version.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { requireNode, requirePrograms } from "./lib/prerequisites.mjs";
import { isAtLeast, root, SetupError } from "./lib/project.mjs";

const platform = `${process.platform}-${process.arch}`;
const runtime = join(root, "runtime");
/** Settings of the npm that runs this script. They must not apply to a second npm. */
const ofOuterNpm =
  /^npm_config_(global|location|prefix|local_prefix|workspaces?|include_workspace_root|dry_run|package_lock_only|omit)$/i;
const addonFolders = ["src/records/addon", "src/gateway/http/addon"];

function install() {
  requireNode();
  const { glibcVersionRuntime } = process.report.getReport().header;
  if (process.platform === "linux" && glibcVersionRuntime === undefined)
    throw new SetupError(
      "this system has no glibc (Alpine has musl), which uWebSockets.js needs: use a system or image with glibc, such as Debian",
    );
  const { pinnedNode } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const name = Object.keys(pinnedNode).find((one) => one.endsWith(`-${platform}`));
  const node = process.versions.node.split(".").map(Number);
  const isSuitable = node[0] === 22 && isAtLeast(node, [22, 19]);
  const isPrebuilt = existsSync(join(root, "prebuilt", platform));
  if (!isPrebuilt) requirePrograms();
  const headers = join(runtime, "node_modules", name, "include");
  const hasNode = existsSync(join(runtime, "node_modules", ".bin", "node"));
  if (!isSuitable && !(hasNode && (isPrebuilt || existsSync(headers))))
    fetchNode(name, pinnedNode[name]);
  // A third of the fetched Node are headers, which only building the addons needs.
  if (isPrebuilt) rmSync(headers, { recursive: true, force: true });
  else buildAddons(name);
}

/** In a separate folder, so that it is not the `node` of other packages. */
function fetchNode(name, version) {
  const flags = ["--no-audit", "--no-fund", "--no-save", "--prefer-offline", "--loglevel=error"];
  try {
    rmSync(runtime, { recursive: true, force: true });
    run("npm", ["install", "--prefix", runtime, ...flags, `${name}@${version}`]);
  } catch (error) {
    rmSync(runtime, { recursive: true, force: true });
    throw new SetupError(
      `Node ${version} could not be fetched, and npm runs on ${process.version}: use Node 22.19 or a newer 22 (${error.message})`,
    );
  }
}

function buildAddons(name) {
  const gyp = process.env.npm_config_node_gyp;
  if (gyp === undefined)
    throw new SetupError(
      `there is no addon for ${platform}: build it with \`npm rebuild penstock\``,
    );
  const pinned = join(runtime, "node_modules", name);
  const nodedir = existsSync(join(pinned, "include")) ? [`--nodedir=${pinned}`] : [];
  for (const folder of addonFolders)
    run(process.execPath, [gyp, "rebuild", "--directory", join(root, folder), ...nodedir]);
}

function run(program, args) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !ofOuterNpm.test(name)),
  );
  const { status, error } = spawnSync(program, args, { stdio: "inherit", env });
  if (status !== 0)
    throw new SetupError(
      `${program} ${args[0]} failed: ${error?.message ?? `exit code ${status}`}`,
    );
}

try {
  install();
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`penstock: ${error.message}\n`);
  process.exitCode = 1;
}
