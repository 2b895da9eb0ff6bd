// Fuzzes the core of the scan addon:
//   npm run fuzz -- [--seconds 60] [--jobs 1] [--seed N] [--engine libfuzzer|standalone]
//   npm run fuzz -- --reference [--seconds 60] [--seed N]   the addon and the reference scanner on the same bodies
//   npm run fuzz -- FILE…          runs these inputs and no others
//   npm run fuzz -- --keep FILE…   takes them into the corpus of the tree
// Exit code 1: something was found, and the path of the input is printed.

import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildTarget, engineNames, findEngine, unpackCorpus } from "./lib/fuzz-build.mjs";
import { cacheDir, root, runtimeNode, SetupError } from "./lib/project.mjs";

const corpusFile = join(root, "tools", "fuzz", "corpus.jsonl");
const grownDir = join(cacheDir, "fuzz", "corpus");
const findsDir = join(cacheDir, "fuzz", "finds");
const logsDir = join(cacheDir, "logs");
const inputBytesMax = 9000;

const running = new Set();

function say(line) {
  process.stdout.write(`fuzz: ${line}\n`);
}

function wholeNumber(name, text) {
  if (!/^[1-9]\d{0,6}$/.test(text))
    throw new SetupError(`--${name} is a whole number from 1: ${text}`);
  return Number(text);
}

function readOptions() {
  const kinds = { seconds: "60", jobs: "1", seed: String(1 + (Date.now() % 1_000_000)) };
  const options = Object.fromEntries(
    Object.entries(kinds).map(([name, value]) => [name, { type: "string", default: value }]),
  );
  const flags = {
    engine: { type: "string" },
    reference: { type: "boolean" },
    keep: { type: "boolean" },
  };
  const { values, positionals } = parseArgs({
    options: { ...options, ...flags },
    allowPositionals: true,
  });
  if (values.engine !== undefined && !engineNames.includes(values.engine)) {
    throw new SetupError(`--engine is one of ${engineNames.join(", ")}: ${values.engine}`);
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

/** A body as a line of the corpus: a JSON string, a character a byte, all of it printable ASCII. */
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

/** Runs a program to its end; `onText` gets all it says. Answers its exit code. */
function run(program, args, onText) {
  return new Promise((done) => {
    const child = spawn(program, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    running.add(child);
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

/**
 * The lines of a failed run that say what was found and where: of the stack, the places in our own
 * files.
 */
function findIn(said) {
  const isTelling = (line) =>
    /^fuzz: |ERROR: |runtime error: |^\s+#\d+ .*\/(fuzz|addon)\/\w+\.(cc|h)(:\d+)*$/.test(line);
  const file = /Test unit written to (.*)/.exec(said)?.[1];
  const input =
    file === undefined ? said.split("\n").slice(-10) : [`input: ${relative(root, file)}`];
  return [...said.split("\n").filter(isTelling).slice(0, 20), ...input].join("\n");
}

async function runJob(program, args, log) {
  let said = "";
  const code = await run(program, args, (text) => {
    said += text;
  });
  writeFileSync(log, said);
  return { code, said, log };
}

async function fuzz({ seconds, jobs, seed, engine: wanted, files }) {
  const engine = findEngine(wanted);
  const program = buildTarget(engine, say);
  for (const folder of [grownDir, findsDir, logsDir]) mkdirSync(folder, { recursive: true });
  if (files.length > 0) return run(program, files, (text) => process.stdout.write(text));

  const lines = corpusLines();
  const seeds = unpackCorpus(lines);
  const grown = readdirSync(grownDir).length;
  say(
    `${seconds} s, ${jobs} job(s), seed ${seed}, ${engine.name}; corpus: ${lines.length} of the tree, ${grown} grown here`,
  );
  const args = [
    `-max_total_time=${seconds}`,
    `-max_len=${inputBytesMax}`,
    `-dict=${join(root, "tools", "fuzz", "dictionary.txt")}`,
    `-artifact_prefix=${findsDir}/`,
    "-timeout=20",
    "-print_final_stats=1",
  ];
  const runs = Array.from({ length: jobs }, (_, index) =>
    runJob(
      program,
      [...args, `-seed=${seed + index}`, grownDir, seeds],
      join(logsDir, `fuzz-${index + 1}.log`),
    ),
  );
  const results = await Promise.all(runs);
  for (const { said } of results.filter(({ code }) => code === 0)) {
    const added = figure(said, "new_units_added");
    const [executions, rate] = ["number_of_executed_units", "average_exec_per_sec"].map((name) =>
      figure(said, name),
    );
    say(`${executions} executions, ${rate} a second, corpus ${grown} + ${added} inputs`);
  }
  const finds = results.filter(({ code }) => code !== 0);
  for (const { said, log } of finds) say(`FOUND, log: ${relative(root, log)}\n${findIn(said)}`);
  if (finds.length === 0) say("nothing found");
  return finds.length === 0 ? 0 : 1;
}

function compareWithReference({ seconds, seed }) {
  const script = join(root, "tools", "fuzz", "compare.ts");
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
  if (!(error instanceof SetupError) && error.code?.startsWith("ERR_PARSE_ARGS") !== true)
    throw error;
  say(`stopped: ${error.message}`);
  process.exitCode = 1;
}
