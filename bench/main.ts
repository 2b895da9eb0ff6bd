// `npm run bench`: arguments, the order of the scenarios, and the report. Exit code 1: an
// acknowledged event is not in the stream, or a run fails; 2: wrong usage. An unmet budget is not a
// failure.

import { writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { refuseNpmOptions } from "../src/commands/called-as.ts";
import { usageExitCode } from "../src/commands/context.ts";
import type { Bench } from "./harness/bench.ts";
import { type ClosedLoop, hasWrk } from "./harness/load.ts";
import { removeWorkFiles } from "./harness/nats.ts";
import { budgetsOf, budgetTable } from "./report/budgets.ts";
import { comparisonSvg } from "./report/chart.ts";
import { machine, versions } from "./report/machine.ts";
import { resultsFolder, writeResult } from "./report/result.ts";
import { median, type Row } from "./report/rows.ts";
import { tablesOf } from "./report/tables.ts";
import { figure } from "./report/text-table.ts";
import { cost } from "./scenarios/cost.ts";
import { effects } from "./scenarios/effects.ts";
import { fairness } from "./scenarios/fairness.ts";
import { fsyncs } from "./scenarios/fsyncs.ts";
import { growth } from "./scenarios/growth.ts";
import { importing } from "./scenarios/import.ts";
import { latency } from "./scenarios/latency.ts";
import { limits } from "./scenarios/limits.ts";
import { neighbours } from "./scenarios/neighbours.ts";
import { peersScenario } from "./scenarios/peers.ts";
import { publish } from "./scenarios/publish.ts";
import { replicas } from "./scenarios/replicas.ts";
import { rules } from "./scenarios/rules.ts";
import { scan } from "./scenarios/scan.ts";
import { sinks } from "./scenarios/sinks.ts";
import { projects, sizes, throughput, workers } from "./scenarios/throughput.ts";

interface Options {
  readonly quick: boolean;
  readonly growth: boolean;
  readonly only?: string[];
  readonly rounds?: number;
  readonly beside?: string[];
  readonly client?: ClosedLoop;
}

const scenarios = {
  throughput,
  limits,
  fairness,
  neighbours,
  fsyncs,
  scan,
  rules,
  latency,
  publish,
  effects,
  sinks,
  import: importing,
  sizes,
  projects,
  workers,
  replicas,
  cost,
  growth,
  peers: peersScenario,
};
type ScenarioName = keyof typeof scenarios;
const names = Object.keys(scenarios) as ScenarioName[];
/** The other scenarios would make a run too long. */
const usual = names.filter((name) => !["replicas", "cost", "growth", "peers"].includes(name));
const quickly = usual.filter(
  (name) =>
    !["neighbours", "rules", "effects", "sinks", "import", "sizes", "projects", "workers"].includes(
      name,
    ),
);

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new InvalidArgumentError("must be a whole number of 1 or more");
  return value;
}

function scenarioNames(text: string, before: readonly string[] = []): string[] {
  const given = text.split(",").filter((name) => name !== "");
  for (const name of given) {
    if (!Object.hasOwn(scenarios, name))
      throw new InvalidArgumentError(`must be of ${names.join(", ")}: got "${name}"`);
  }
  return [...before, ...given];
}

function readOptions(): Options {
  const program = new Command("bench")
    .description(
      "Measures Penstock against what one would write in an afternoon, and against the budgets.",
    )
    .option("--quick", "one round of the main scenarios, in under two minutes", false)
    .option("--only <names...>", `only these scenarios, of ${names.join(", ")}`, scenarioNames)
    .option("--rounds <count>", "number of rounds of everything", wholeNumber)
    .option(
      "--beside <texts...>",
      "for neighbours: only attacks with one of these texts in their name",
    )
    .option(
      "--growth",
      "only measure how cost grows with batch size, connections, event size and projects",
      false,
    )
    .addOption(
      new Option(
        "--client <name>",
        "load generator for small requests (default: wrk if it is installed)",
      ).choices(["wrk", "autocannon"]),
    )
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : usageExitCode));
  const { argv, env } = process;
  refuseNpmOptions(program, { args: argv.slice(2), env, script: "main.ts" });
  return program.parse().opts<Options>();
}

function chosen({ quick, growth: onlyGrowth, only }: Options): readonly ScenarioName[] {
  if (only !== undefined) return names.filter((name) => only.includes(name));
  if (onlyGrowth) return ["growth"];
  return quick ? quickly : usual;
}

/** A result gets a remark if other processes use more CPU. The kernel always uses some CPU. */
const otherCoresMax = 0.3;

const headlines: readonly (readonly [string, string])[] = [
  ["cpuRatio", "× CPU"],
  ["eventsPerSecond", "events/s"],
  ["p99", "ms p99"],
  ["p99Ratio", "× p99"],
  ["bytesPerSecond", "bytes/s"],
  ["restBytes", "bytes at rest"],
  ["aboveBytes", "bytes above rest"],
  ["loopDelayP99Ms", "ms loop delay p99"],
  ["fsyncsPerMessage", "fsyncs a message"],
  ["longestGapMs", "ms without a 200"],
];

function progressLine({ scenario, variant, sync, round, values }: Row): string {
  const [name, unit] = headlines.find(([field]) => field in values) ?? ["", ""];
  const parts = [`round ${round}`, variant, ...(sync === "" ? [] : [`sync ${sync}`]), scenario];
  return `${parts.join(", ")}: ${figure(values[name] ?? Number.NaN)} ${unit}`;
}

async function main(): Promise<void> {
  const options = readOptions();
  const closedLoop = options.client ?? (hasWrk() ? "wrk" : "autocannon");
  const at = new Date().toISOString();
  const beganMs = performance.now();
  const rows: Row[] = [];
  const remarks: string[] = [];
  const say = (text: string) =>
    process.stdout.write(`[${((performance.now() - beganMs) / 1_000).toFixed(0)} s] ${text}\n`);
  const bench: Bench = {
    quick: options.quick,
    closedLoop,
    beside: options.beside,
    rounds: (count) => options.rounds ?? (options.quick ? 1 : count),
    note(row) {
      rows.push(row);
      say(progressLine(row));
    },
    remark(text) {
      remarks.push(text);
      say(text);
    },
  };
  const machineHere = machine();
  const versionsHere = versions(closedLoop);
  process.stdout.write(`${JSON.stringify({ ...machineHere, ...versionsHere }, null, 1)}\n`);
  try {
    for (const name of chosen(options)) {
      say(name);
      await scenarios[name](bench);
    }
  } finally {
    removeWorkFiles();
  }
  const otherCores = median(
    rows.map((row) => row.values["otherCores"] ?? Number.NaN).filter(Number.isFinite),
  );
  if (otherCores > otherCoresMax) {
    bench.remark(
      `other processes used ${figure(otherCores)} cores (median): repeat this on an idle machine`,
    );
  }
  const budgets = budgetsOf(rows);
  process.stdout.write(`\n\n${tablesOf(rows)}\n\n\n${budgetTable(budgets)}\n\n`);
  for (const remark of remarks) process.stdout.write(`${remark}\n`);
  const result = {
    at,
    arguments: process.argv.slice(2),
    machine: machineHere,
    versions: versionsHere,
    remarks,
    budgets,
    rows,
  };
  process.stdout.write(`\nwritten: ${relative("", writeResult(result))}\n`);
  const { cpu, cores, filesystem } = machineHere;
  const caption = `${cores} cores of ${cpu}, ${filesystem}, load included; nats-server ${versionsHere.natsServer}, ${versionsHere.closedLoop}; ${at.slice(0, 10)}, ${versionsHere.commit}`;
  const svg = comparisonSvg(rows, caption);
  if (svg === undefined) return;
  const file = join(resultsFolder, "comparison.svg");
  writeFileSync(file, svg);
  process.stdout.write(`written: ${relative("", file)}\n`);
}

try {
  await main();
} catch (error) {
  process.stderr.write(`bench failed: ${(error as Error).stack ?? String(error)}\n`);
  process.exitCode = 1;
}
