// Sees to HAProxy and nginx, which only the tests of what a proxy makes of odd requests need: those
// on PATH, those fetched before, else the packages of the distribution. A host that can have
// neither goes without; the tests say so.

import { spawnSync } from "node:child_process";
import { existsSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fetchPackage } from "./debian-package.mjs";
import { findOnPath } from "./prerequisites.mjs";
import { announce, cacheDir } from "./project.mjs";

const rows = [
  { name: "haproxy", also: ["liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"] },
  { name: "nginx", also: [] },
];

/**
 * Of each proxy: its program and the folder of libraries that were fetched with it, or why it is
 * not there.
 */
export async function proxies(runner) {
  const found = {};
  for (const row of rows) found[row.name] = await proxy(row, runner);
  return found;
}

async function proxy({ name, also }, runner) {
  const dir = join(cacheDir, name);
  const onPath =
    findOnPath(name) ??
    ["/usr/sbin", "/usr/local/sbin"].map((at) => join(at, name)).find(existsSync);
  if (onPath !== undefined && runs(onPath)) return { program: onPath };
  const kept = keptIn(dir, name);
  if (existsSync(kept.program) && runs(kept.program, kept.libraries)) return kept;
  try {
    announce(`the tests of proxies run ${name}: some MB are fetched, once`);
    await fetchPackage(
      {
        name,
        also,
        dir,
        suites: ({ codename }) => [codename],
        keep: (unpacked) => keep(unpacked, dir, name),
        notDebian: `no ${name} was found`,
        waysToInstall: `install ${name} to have them run`,
      },
      runner,
    );
    return kept;
  } catch (error) {
    return { why: error.message };
  }
}

function keptIn(dir, name) {
  const usr = join(dir, "kept", "usr");
  // Libraries lie in a folder named after the architecture.
  const triple = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[process.arch] ?? "";
  return { program: join(usr, "sbin", name), libraries: join(usr, "lib", triple) };
}

function keep(unpacked, dir, name) {
  rmSync(join(dir, "kept"), { recursive: true, force: true });
  renameSync(unpacked, join(dir, "kept"));
  const { program, libraries } = keptIn(dir, name);
  return runs(program, libraries) ? undefined : `${name} does not run on this host`;
}

function runs(program, libraries) {
  return spawnSync(program, ["-v"], { env: environment(libraries) }).status === 0;
}

function environment(libraries) {
  return libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
}
