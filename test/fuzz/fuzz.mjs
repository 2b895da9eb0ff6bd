// Fuzzes the core of the scan addon. If clang++ has libFuzzer, libFuzzer searches for inputs with new
// coverage. Otherwise replays the corpus and seeded mutations of the corpus under the same sanitizers
// and oracles. Prints the name of the engine.
//   npm run fuzz -- [--seconds 60] [--seed N] [--engine libfuzzer|replay]
//   npm run fuzz -- --reference [--seconds 60] [--seed N]
//                                  compares the addon with the reference scanner
//   npm run fuzz -- --planted [--seconds 10] [--seed N] [--engine …]
//                                  checks that the fuzzing finds each bug of
//                                  test/fuzz/planted-bugs.mjs in that time
//   npm run fuzz -- FILE…          runs only these inputs
//   npm run fuzz -- --keep FILE…   adds these inputs to the corpus of the tree
// Exit code 1: an error was found, and the path of the input is printed; 2: wrong usage.

import { spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { Readable } from "node:stream";
import { parseArgs } from "node:util";
import { cacheDir, root, runtimeNode, SetupError, UsageError } from "../../scripts/lib/project.mjs";
import { buildTarget, buildWithBug, engineNames, findEngine, unpackCorpus } from "./fuzz-build.mjs";
import { plantedBugs } from "./planted-bugs.mjs";

const corpusFile = join(root, "test", "fuzz", "corpus.jsonl");
const grownDir = join(cacheDir, "fuzz", "corpus");
const seedsDir = join(cacheDir, "fuzz", "seeds");
const findsDir = join(cacheDir, "fuzz", "finds");
const logsDir = join(cacheDir, "logs");
const inputBytesMax = 9000;

const running = new Set();

function say(line) {
  process.stdout.write(`fuzz: ${line}\n`);
}

function wholeNumber(name, text) {
  if (!/^[1-9]\d{0,6}$/.test(text))
    throw new UsageError(`--${name} is a whole number from 1: ${text}`);
  return Number(text);
}

function readOptions() {
  const kinds = { seconds: "60", seed: String(1 + (Date.now() % 1_000_000)) };
  const options = Object.fromEntries(
    Object.entries(kinds).map(([name, value]) => [name, { type: "string", default: value }]),
  );
  const flags = {
    engine: { type: "string" },
    reference: { type: "boolean" },
    keep: { type: "boolean" },
    planted: { type: "boolean" },
  };
  const { values, positionals } = parseArgs({
    options: { ...options, ...flags },
    allowPositionals: true,
  });
  if (values.engine !== undefined && !engineNames.includes(values.engine)) {
    throw new UsageError(`--engine is one of ${engineNames.join(", ")}: ${values.engine}`);
  }
  const numbers = Object.keys(kinds).map((name) => [name, wholeNumber(name, values[name])]);
  const base = process.env.INIT_CWD ?? process.cwd();
  return {
    ...values,
    ...Object.fromEntries(numbers),
    files: positionals.map((file) => resolve(base, file)),
  };
}

function corpusLines() {
  return readFileSync(corpusFile, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

function lineOf(body) {
  const hexOf = (character) => `\\u00${character.charCodeAt(0).toString(16)}`;
  return JSON.stringify(body.toString("latin1")).replace(/[\x7f-\xff]/g, hexOf);
}

function keep(files) {
  const lines = new Set(corpusLines());
  const before = lines.size;
  for (const file of files) lines.add(lineOf(readFileSync(file)));
  writeFileSync(corpusFile, [...lines].map((line) => `${line}\n`).join(""));
  say(`${lines.size - before} taken into ${relative(root, corpusFile)}`);
  return 0;
}

function run(program, args, onText, input) {
  return new Promise((done) => {
    const child = spawn(program, args, {
      cwd: root,
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    running.add(child);
    // The pipe breaks if the program finds an error and stops reading.
    if (input !== undefined) input.pipe(child.stdin.on("error", () => input.destroy()));
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", onText);
    child.once("error", (error) => onText(`${error.message}\n`));
    child.once("close", (code) => {
      running.delete(child);
      done(code ?? 1);
    });
  });
}

function figure(said, name) {
  return Number(new RegExp(`stat::${name}:\\s+(\\d+)`).exec(said)?.[1] ?? 0);
}

function findIn(said) {
  const isTelling = (line) =>
    /^fuzz: |ERROR: |runtime error: |^\s+#\d+ .*\/(fuzz|addon)\/\w+\.(cc|h)(:\d+)*$/.test(line);
  const file = /Test unit written to (.*)/.exec(said)?.[1];
  const input =
    file === undefined ? said.split("\n").slice(-10) : [`input: ${relative(root, file)}`];
  return [...said.split("\n").filter(isTelling).slice(0, 20), ...input].join("\n");
}

function framed(body) {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(body.length);
  return Buffer.concat([length, body]);
}

function replayFiles(program, files, onText) {
  return run(
    program,
    [`${findsDir}/`],
    onText,
    Readable.from(files.map((file) => framed(readFileSync(file)))),
  );
}

async function replay(program, { seconds, seed, folder = findsDir }, onText) {
  const script = join(root, "test", "fuzz", "bodies.ts");
  const args = ["--disable-warning=ExperimentalWarning", script, String(seconds), String(seed)];
  const bodies = spawn(runtimeNode(), args, { stdio: ["ignore", "pipe", "inherit"] });
  running.add(bodies);
  const fed = new Promise((done) => {
    bodies.once("close", (code) => done(code ?? 1));
  });
  const codes = await Promise.all([run(program, [`${folder}/`], onText, bodies.stdout), fed]);
  running.delete(bodies);
  return codes.find((code) => code !== 0) ?? 0;
}

function runLibFuzzer(program, { seconds, seed, folder }, onText) {
  const args = [
    `-max_total_time=${seconds}`,
    `-max_len=${inputBytesMax}`,
    `-dict=${join(root, "test", "fuzz", "dictionary.txt")}`,
    `-artifact_prefix=${folder ?? findsDir}/`,
    "-timeout=20",
    "-print_final_stats=1",
    `-seed=${seed}`,
  ];
  return run(program, [...args, folder ?? grownDir, seedsDir], onText);
}

async function runJob(engine, program, options, log) {
  const runEngine = engine.name === "replay" ? replay : runLibFuzzer;
  const begin = performance.now();
  let said = "";
  const code = await runEngine(program, options, (text) => {
    said += text;
  });
  writeFileSync(log, said);
  return { code, said, seconds: (performance.now() - begin) / 1000 };
}

async function fuzz(options) {
  const { seconds, seed, engine: wanted, files } = options;
  const engine = findEngine(wanted);
  const program = buildTarget(engine, say);
  for (const folder of [grownDir, findsDir, logsDir]) mkdirSync(folder, { recursive: true });
  const show = (text) => process.stdout.write(text);
  if (files.length > 0) {
    return engine.name === "replay" ? replayFiles(program, files, show) : run(program, files, show);
  }
  const lines = corpusLines();
  unpackCorpus(lines, seedsDir);
  const grown = readdirSync(grownDir).length;
  say(`${seconds} s, seed ${seed}; corpus: ${lines.length} of the tree, ${grown} grown here`);
  say(`${engine.name} (${engine.compiler}): ${engine.does}`);
  const log = join(logsDir, "fuzz.log");
  const { code, said, seconds: took } = await runJob(engine, program, { seconds, seed }, log);
  if (code !== 0) {
    say(`FOUND, log: ${relative(root, log)}\n${findIn(said)}`);
    return 1;
  }
  const executions = figure(said, "number_of_executed_units");
  const perSecond = Math.round(executions / took);
  say(
    `${executions} executions, ${perSecond} a second, ${figure(said, "new_units_added")} inputs grown`,
  );
  say("nothing found");
  return 0;
}

async function findPlanted(options) {
  const engine = findEngine(options.engine);
  buildTarget(engine, say);
  say(`${engine.name} (${engine.compiler}): ${plantedBugs.length} bugs, ${options.seconds} s each`);
  unpackCorpus(corpusLines(), seedsDir);
  let missed = 0;
  for (const bug of plantedBugs) {
    const folder = mkdtempSync(join(tmpdir(), "penstock-fuzz-"));
    try {
      const program = buildWithBug(engine, folder, bug);
      const log = join(folder, "log");
      const { code, said, seconds } = await runJob(engine, program, { ...options, folder }, log);
      const claim = /does not hold: (.*)|ERROR: (.*)|(runtime error: .*)/
        .exec(said)
        ?.slice(1)
        .find(Boolean);
      if (code === 0) missed += 1;
      const found = code === 0 ? "MISSED" : `${seconds.toFixed(1)} s`;
      say(`${found}  ${bug[0]}: ${bug[1]} -> ${bug[2]}  ${claim ?? ""}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  say(`${plantedBugs.length - missed} of ${plantedBugs.length} found`);
  return missed;
}

function compareWithReference({ seconds, seed }) {
  const script = join(root, "test", "fuzz", "compare.ts");
  const args = [
    "--disable-warning=ExperimentalWarning",
    script,
    String(seconds),
    String(seed),
    findsDir,
  ];
  return run(runtimeNode(), args, (text) => process.stdout.write(text));
}

async function main() {
  const options = readOptions();
  if (options.keep) return keep(options.files.filter((file) => statSync(file).isFile()));
  if (options.planted) return findPlanted(options);
  return options.reference ? compareWithReference(options) : fuzz(options);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    for (const child of running) child.kill("SIGKILL");
    process.exit(1);
  });
}
try {
  process.exitCode = (await main()) === 0 ? 0 : 1;
} catch (error) {
  const isParsing = error.code?.startsWith("ERR_PARSE_ARGS") === true;
  if (!(error instanceof SetupError) && !isParsing) throw error;
  say(`stopped: ${error.message}`);
  process.exitCode = isParsing || error instanceof UsageError ? 2 : 1;
}
