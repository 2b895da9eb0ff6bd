// Fetches DuckDB, the Parquet writer, into a separate folder, because few users need it. A common
// lock file would need its packages for all platforms, which some registries lack.

import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { npmFailed, npmFlags } from "./install.mjs";
import { announce, cacheDir, hostEnvironment, root } from "./project.mjs";
import { keyOf, removeStamp, stampIs, writeStamp } from "./stamps.mjs";

const manifests = ["package.json", "package-lock.json"];
const manifestDir = join(root, "scripts", "duckdb");
const duckdbDir = join(cacheDir, "duckdb");

function duckdbKey() {
  const files = manifests.map((name) => join(manifestDir, name));
  return keyOf(files, [process.platform, process.arch]);
}

export function isDuckdbCurrent() {
  return stampIs("duckdb", duckdbKey()) && existsSync(join(duckdbDir, "node_modules"));
}

export async function bringDuckdb(runner) {
  if (isDuckdbCurrent()) return;
  removeStamp("duckdb");
  const next = `${duckdbDir}.next`;
  rmSync(next, { recursive: true, force: true });
  mkdirSync(next, { recursive: true });
  for (const name of manifests) copyFileSync(join(manifestDir, name), join(next, name));
  announce("fetching DuckDB, which makes Parquet files (npm)");
  const env = hostEnvironment();
  const { ok, said } = await runner.run("npm", ["install", ...npmFlags], { cwd: next, env });
  if (!ok) throw npmFailed("install", said);
  rmSync(duckdbDir, { recursive: true, force: true });
  renameSync(next, duckdbDir);
  writeStamp("duckdb", duckdbKey());
}
