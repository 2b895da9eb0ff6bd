// Checks the project's C++. clang-format checks the format. g++ and clang++ compile it with every
// warning below as an error.
//
// `npm run check` checks only the format. `npm run check:cpp` checks both, as CI does.
//
// The addons' own builds do not enable these warnings, because warnings of newer compilers must not
// fail a build.

import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { modulesDir, pinnedNodeDir, root } from "./lib/project.mjs";
import { filesUnder, keyOf, stampIs, writeStamp } from "./lib/stamps.mjs";

const warnings = [
  "-Wall",
  "-Wextra",
  "-Wpedantic",
  "-Wshadow",
  "-Wconversion",
  "-Wsign-conversion",
  "-Wold-style-cast",
  "-Wcast-qual",
  "-Wcast-align",
  "-Wnon-virtual-dtor",
  "-Woverloaded-virtual",
  "-Wnull-dereference",
  "-Wformat=2",
  "-Wundef",
  "-Wimplicit-fallthrough",
  "-Wextra-semi",
  "-Wdouble-promotion",
  "-Wswitch-enum",
];
const scanDir = join(root, "src", "records", "addon");
const style = join(scanDir, ".clang-format");
const fuzzDir = join(root, "test", "fuzz");
const nodeHeaders = join(pinnedNodeDir(), "include", "node");
// System headers give no warnings. g++ needs optimisation to track values.
const common = [
  "-O2",
  "-c",
  "-o",
  "/dev/null",
  "-Werror",
  ...warnings,
  "-DNAPI_VERSION=8",
  "-isystem",
  join(modulesDir, "@nozbe", "simdjson", "src"),
  "-isystem",
  nodeHeaders,
  "-I",
  scanDir,
  "-I",
  fuzzDir,
];
const parts = [
  { folder: scanDir, standard: "-std=c++17" },
  { folder: fuzzDir, standard: "-std=c++17" },
  { folder: join(root, "src", "gateway", "http", "addon"), standard: "-std=c++20" },
];

function versionLine(program) {
  try {
    return execFileSync(program, ["--version"], { encoding: "utf8", stdio: "pipe" }).split("\n")[0];
  } catch {
    return undefined;
  }
}

async function failureOf(program, args) {
  try {
    await promisify(execFile)(program, args, { cwd: root });
    return undefined;
  } catch (error) {
    return error.stderr || error.message;
  }
}

async function compileAll(compiler) {
  const failures = [];
  for (const { folder, standard } of parts) {
    for (const source of filesUnder(folder, (name) => name.endsWith(".cc"))) {
      failures.push(await failureOf(compiler, [standard, ...common, relative(root, source)]));
    }
  }
  return failures;
}

function toolsOf(names) {
  const tools = new Map(names.map((name) => [name, versionLine(name)]));
  const missing = names.filter((name) => tools.get(name) === undefined);
  for (const name of missing) {
    console.log(`check: C++ is checked without ${name}, which is not installed`);
    tools.delete(name);
  }
  return tools;
}

function checkWith(name, sources) {
  if (name === "clang-format")
    return failureOf(name, [`--style=file:${style}`, "--dry-run", "-Werror", ...sources]);
  if (existsSync(nodeHeaders)) return compileAll(name);
  console.log(`check: C++ is not compiled, there are no headers in ${nodeHeaders}`);
  return undefined;
}

async function main() {
  const isAll = !process.argv.includes("--format");
  const tools = toolsOf([...(isAll ? ["g++", "clang++"] : []), "clang-format"]);
  const ours = parts.flatMap(({ folder }) => filesUnder(folder, (name) => /\.(cc|h)$/.test(name)));
  const inputs = [...ours, style, fileURLToPath(import.meta.url)];
  const key = keyOf(inputs, [JSON.stringify([...tools])]);
  const stamp = isAll ? "check-cpp" : "check-cpp-format";
  if (stampIs(stamp, key)) return 0;
  const checks = [...tools.keys()].map((name) => checkWith(name, ours));
  const failures = (await Promise.all(checks)).flat().filter((text) => text !== undefined);
  for (const failure of failures) console.error(failure);
  if (failures.length === 0) writeStamp(stamp, key);
  return failures.length === 0 ? 0 : 1;
}

process.exitCode = await main();
