// Builds the fuzz target with sanitizers: for clang's libFuzzer if available, or else as a program
// that replays bodies.

import { execFileSync, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheDir, modulesDir, root, SetupError } from "../../scripts/lib/project.mjs";
import { filesUnder, keyOf, removeStamp, stampIs, writeStamp } from "../../scripts/lib/stamps.mjs";

const fuzzDir = join(root, "test", "fuzz");
const coreDir = join(root, "src", "records", "addon");
const simdjsonDir = join(modulesDir, "@nozbe", "simdjson", "src");

const sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
const common = [
  "-std=c++17",
  "-O1",
  "-g1",
  "-fno-omit-frame-pointer",
  ...sanitizers,
  "-isystem",
  simdjsonDir,
];
// Small limits, so that short texts exceed them. The oracles must use the same limits.
const limits = [
  "-DPENSTOCK_DEPTH_MAX=6",
  "-DPENSTOCK_NUMBER_DIGITS_MAX=24",
  "-DPENSTOCK_KEY_TOKEN_BYTES_MAX=16",
];
const own = [...common, ...limits, "-I", coreDir, "-I", fuzzDir];
const core = [
  "array_keys",
  "ascii_text",
  "event_scan",
  "event_walk",
  "find_members",
  "plan_rows",
  "item_reader",
  "change_items",
  "json_fault",
  "json_walk",
  "name_set",
  "normalise",
  "schema_checks",
  "stored_lines",
  "token_index",
  "text_repair",
];
// Small sizes, so that short texts span several windows and have more tokens than the core holds.
const coreDefines = [
  "-DPENSTOCK_WINDOW_BYTES=64",
  "-DPENSTOCK_INDEX_WINDOW_BYTES=32",
  "-DPENSTOCK_INDEX_ENTRIES_MAX=100",
];
const oracles = [
  "target",
  "scan_run",
  "plain_form",
  "dom_oracle",
  "table_oracle",
  "key_oracle",
  "fault_oracle",
  "edited_item",
  "plan_rows_oracle",
  "found_members_oracle",
  "item_changes_oracle",
  "stored_lines_oracle",
  "lexer",
];

const engines = [
  {
    name: "libfuzzer",
    does: "mutates the corpus, and searches for inputs with new coverage",
    compilers: ["clang++"],
    watched: ["-fsanitize=fuzzer-no-link"],
    link: ["-fsanitize=fuzzer"],
    driver: [],
    probe:
      'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n',
  },
  {
    name: "replay",
    does: "replays the corpus and seeded mutations of it; libFuzzer would search for new coverage",
    compilers: ["g++", "clang++"],
    watched: [],
    link: [],
    driver: ["replay"],
    probe: "int main() { return 0; }\n",
  },
];

export const engineNames = engines.map(({ name }) => name);

export function findEngine(wanted) {
  for (const engine of engines) {
    if (wanted !== undefined && engine.name !== wanted) continue;
    const compiler = engine.compilers.find((candidate) => links(candidate, engine));
    if (compiler !== undefined) return { ...engine, compiler };
  }
  const needed = "a g++ or clang++ that links with -fsanitize=address,undefined";
  throw new SetupError(
    `fuzzing needs ${wanted === "libfuzzer" ? "a clang++ that links with -fsanitize=fuzzer" : needed}`,
  );
}

function links(compiler, { probe, link }) {
  const work = mkdtempSync(join(tmpdir(), "penstock-fuzz-"));
  try {
    const args = [...sanitizers, ...link, "-x", "c++", "-", "-o", join(work, "probe")];
    const done = spawnSync(compiler, args, { input: probe, stdio: ["pipe", "ignore", "ignore"] });
    return done.status === 0;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const coreFlags = (engine) => [...own, ...coreDefines, ...engine.watched];
const objectOf = (engine, name) => join(folderOf(engine), `${name}.o`);
const folderOf = (engine) => join(cacheDir, "fuzz", engine.name);

export function buildTarget(engine, announce) {
  const program = join(folderOf(engine), "fuzz");
  const version = execFileSync(engine.compiler, ["--version"], { encoding: "utf8" });
  const simdjson = objectOf(engine, "simdjson");
  const simdjsonKey = keyOf([join(simdjsonDir, "..", "package.json")], [version, ...common]);
  const units = [
    ...core.map((name) => ({ name, folder: coreDir, flags: coreFlags(engine) })),
    ...[...oracles, ...engine.driver].map((name) => ({ name, folder: fuzzDir, flags: own })),
  ];
  const isSource = (name) => /\.(cc|h)$/.test(name);
  const key = keyOf(
    [...filesUnder(coreDir, isSource), ...filesUnder(fuzzDir, isSource)],
    [simdjsonKey, JSON.stringify(units), JSON.stringify(engine.link)],
  );
  const stamp = `fuzz-${engine.name}`;
  if (stampIs(stamp, key) && existsSync(program)) return program;

  mkdirSync(folderOf(engine), { recursive: true });
  const simdjsonStamp = `${stamp}-simdjson`;
  if (!stampIs(simdjsonStamp, simdjsonKey) || !existsSync(simdjson)) {
    announce(`building simdjson with sanitizers (${engine.compiler}), once`);
    removeStamp(simdjsonStamp);
    const source = join(simdjsonDir, "simdjson.cpp");
    compile(engine.compiler, [...common, "-w", "-c", source, "-o", simdjson]);
    writeStamp(simdjsonStamp, simdjsonKey);
  }
  announce(`building the fuzz target (${engine.compiler})`);
  removeStamp(stamp);
  for (const { name, folder, flags } of units) {
    const source = join(folder, `${name}.cc`);
    compile(engine.compiler, [...flags, "-c", source, "-o", objectOf(engine, name)]);
  }
  const objects = units.map(({ name }) => objectOf(engine, name));
  compile(engine.compiler, [...sanitizers, ...engine.link, ...objects, simdjson, "-o", program]);
  writeStamp(stamp, key);
  return program;
}

export function buildWithBug(engine, folder, [file, from, to]) {
  const copy = join(folder, "core");
  cpSync(coreDir, copy, { recursive: true, filter: (path) => !path.endsWith("build") });
  const parts = readFileSync(join(copy, file), "utf8").split(from);
  if (parts.length !== 2)
    throw new SetupError(`the bug cannot be planted: ${file} has ${parts.length - 1} of "${from}"`);
  writeFileSync(join(copy, file), parts.join(to));
  const isChanged = (name) => file.endsWith(".h") || file === `${name}.cc`;
  const changed = core.filter(isChanged);
  for (const name of changed) {
    const [source, object] = [join(copy, `${name}.cc`), join(folder, `${name}.o`)];
    compile(engine.compiler, [...coreFlags(engine), "-w", "-c", source, "-o", object]);
  }
  const objects = [
    ...core.map((name) => (isChanged(name) ? join(folder, `${name}.o`) : objectOf(engine, name))),
    ...[...oracles, ...engine.driver, "simdjson"].map((name) => objectOf(engine, name)),
  ];
  const program = join(folder, "fuzz");
  compile(engine.compiler, [...sanitizers, ...engine.link, ...objects, "-o", program]);
  return program;
}

function compile(compiler, args) {
  const done = spawnSync(compiler, args, { cwd: root, encoding: "utf8" });
  if (done.status !== 0) throw new SetupError(`${done.stderr ?? ""}${compiler} failed: see above`);
}

export function unpackCorpus(lines, folder) {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  for (const [index, line] of lines.entries()) {
    writeFileSync(join(folder, String(index)), Buffer.from(JSON.parse(line), "latin1"));
  }
}
