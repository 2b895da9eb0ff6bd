// Compiles simdjson while npm installs the packages: it takes longer than the rest of the build,
// and a processor is idle then. Its package is fetched separately and verified against
// package-lock.json. A failure is not reported, because the build of the addon compiles simdjson
// itself.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { announce, cacheDir, hostEnvironment, root } from "./project.mjs";

const name = "@nozbe/simdjson";
const workDir = join(cacheDir, "simdjson-ahead");

/** Installing must not wait longer for an optional step. */
const packMsMax = 20_000;

/** The flags that node-gyp would use on Linux: the addon's own and those of Node's common.gypi. */
const flags = [
  ...["-O3", "-std=c++17", "-w", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden"],
  ...["-fno-rtti", "-fno-exceptions", "-fno-strict-aliasing", "-fno-omit-frame-pointer"],
];

/** The object file, or undefined. Rejects once set-up is interrupted. */
export async function compileSimdjsonAhead(runner) {
  removeSimdjsonAhead();
  // The user's own flags are read by the makefiles of node-gyp.
  const { CPPFLAGS = "", CXXFLAGS = "", CXX = "g++" } = process.env;
  if (process.platform !== "linux" || CPPFLAGS + CXXFLAGS !== "") return undefined;
  mkdirSync(workDir, { recursive: true });
  const run = async (program, args, options = {}) =>
    (await runner.run(program, args, { cwd: workDir, ...options })).ok;
  const { version, integrity } = lockedPackage();
  const pack = ["pack", `${name}@${version}`, "--silent", "--ignore-scripts", "--fetch-retries=0"];
  const options = { env: hostEnvironment(), timeoutMs: packMsMax };
  if (!(await run("npm", pack, options))) return undefined;
  const archive = readdirSync(workDir).find((file) => file.endsWith(".tgz"));
  if (archive === undefined || integrityOf(join(workDir, archive)) !== integrity) return undefined;
  if (!(await run("tar", ["-xzf", archive]))) return undefined;
  announce("compiling simdjson meanwhile");
  const object = join(workDir, "simdjson.o");
  const source = join("package", "src", "simdjson.cpp");
  const isCompiled = await run(CXX, [...flags, "-c", source, "-o", object]);
  return isCompiled ? object : undefined;
}

/** Called when the addon is built, or will not be built. */
export function removeSimdjsonAhead() {
  rmSync(workDir, { recursive: true, force: true });
}

function lockedPackage() {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  return packages[`node_modules/${name}`] ?? {};
}

function integrityOf(file) {
  return `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`;
}
