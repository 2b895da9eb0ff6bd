// `npm run faults`: runs scenarios against each given nats-server. Prints a table of lost,
// duplicated and rejected events and of the gateway's recovery time. Exit code 1: a promise was
// broken; 2: wrong usage.

import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { writeFileSync } from "node:fs";
import { constants } from "node:os";
import { Command, InvalidArgumentError, Option } from "commander";
import { refuseNpmOptions } from "../../src/commands/called-as.ts";
import { usageExitCode } from "../../src/commands/context.ts";
import { findNatsServer, oldestNatsServer } from "../kit/nats-server.ts";
import { type NetworkKind, networkKinds } from "./cluster-network.ts";
import { runEffectsScenario } from "./effects/run-effects-scenario.ts";
import { databasesOf, type EffectsResult, type EffectsScenario } from "./effects/scenario.ts";
import { effectsScenarios } from "./effects/scenarios.ts";
import { type LoadName, loadNames } from "./event-kinds.ts";
import { type ImportResult, importKilled, runImportKilled } from "./import/import-killed.ts";
import { whyNoNamespaces } from "./namespaces.ts";
import { type RunResult, runScenario } from "./run-scenario.ts";
import type { Scenario } from "./scenario.ts";
import { clusterRandomWalk } from "./scenarios/cluster-random-walk.ts";
import { scenarios } from "./scenarios.ts";
import { soak } from "./soak.ts";
import { effectsTableOf, importTableOf, tableOf } from "./table.ts";

interface Options {
  readonly natsServer: readonly string[];
  readonly load: readonly LoadName[];
  readonly short: boolean;
  readonly recoveryMs: number;
  readonly json?: string;
  readonly list: boolean;
  readonly soak?: string;
  readonly walk?: string;
  readonly seed: number;
  readonly network?: NetworkKind;
  readonly delayMs?: number;
  readonly syncInterval?: string;
}

const recoveryMsDefault = 3_000;
const seedEnd = 2 ** 32;
const delayMsMax = 10_000;
const loadsDefault: readonly LoadName[] = ["singles", "batches"];

function commandLine(): Command {
  return new Command("faults")
    .description("Breaks things under load and checks that what was acknowledged is stored.")
    .argument("[scenario...]", "scenarios to run (default: all)")
    .option(
      "--nats-server <file>",
      "nats-server binary, or `oldest` (repeatable); every scenario runs on each (default: the one of the tests)",
      added,
      [],
    )
    .addOption(
      new Option(
        "--load <name>",
        "load: singles, batches, mixed, projects, rules (repeatable; default: singles and batches)",
      )
        .argParser((value: string, before: readonly string[]) =>
          added(oneOf(loadNames, value), before),
        )
        .default([]),
    )
    .option("--short", "short form as in npm test: faults of a second", false)
    .addOption(
      new Option(
        "--recovery-ms <number>",
        "maximum time until 200 answers return; raise it on a busy machine",
      )
        .argParser(Number)
        .default(recoveryMsDefault),
    )
    .addOption(
      new Option(
        "--seed <number>",
        "seed of all random choices, which each run prints (default: random)",
      )
        .argParser(seedOf)
        .default(randomInt(seedEnd), "random"),
    )
    .addOption(
      new Option(
        "--network <kind>",
        "network between nodes: namespaces lose packets, TCP proxies hold bytes back (default: namespaces if available (as root), otherwise proxies)",
      ).choices(networkKinds),
    )
    .addOption(
      new Option(
        "--delay-ms <number>",
        "delay between gateway and store, each way, through proxies (default: set by the scenario, mostly none)",
      ).argParser(delayOf),
    )
    .option(
      "--sync-interval <duration>",
      "sync_interval of the nats-servers (such as 2m) instead of always; not for the embedded one",
    )
    .option("--json <file>", "also write the results to this file")
    .option("--list", "only list the scenarios", false)
    .option(
      "--walk <duration>",
      `instead: run only ${clusterRandomWalk.name} for this long (90s, 10m)`,
    )
    .option(
      "--soak <duration>",
      "instead: run a mixed load for this long (90s, 60m, 2h) with a fault every few minutes",
    )
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : usageExitCode));
}

function added(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

/** `named` is a path, or `oldest` for the oldest supported version, which is fetched. */
function binaryOf(named: string): string {
  return named === "oldest" ? oldestNatsServer() : named;
}

function oneOf(values: readonly string[], value: string): string {
  if (!values.includes(value))
    throw new InvalidArgumentError(`must be one of ${values.join(", ")}`);
  return value;
}

function seedOf(text: string): number {
  const seed = Number(text);
  if (!/^\d+$/.test(text) || seed >= seedEnd) {
    throw new InvalidArgumentError(`must be a whole number below ${seedEnd}`);
  }
  return seed;
}

function delayOf(text: string): number {
  const delayMs = Number(text);
  if (!/^\d+$/.test(text) || delayMs > delayMsMax)
    throw new InvalidArgumentError(`must be a whole number up to ${delayMsMax}`);
  return delayMs;
}

async function main(): Promise<number> {
  const program = commandLine();
  const { argv, env } = process;
  refuseNpmOptions(program, { args: argv.slice(2), env, script: "run.ts" });
  program.parse();
  const options = program.opts<Options>();
  const chosenNow =
    options.walk === undefined
      ? chosen(program, program.args)
      : { named: [clusterRandomWalk], effects: [], imports: [] };
  if (options.list) {
    const all = allScenarios();
    const width = Math.max(...all.map(({ name }) => name.length)) + 2;
    for (const { name, title } of all) process.stdout.write(`${name.padEnd(width)}${title}\n`);
    return 0;
  }
  const binaries =
    options.natsServer.length > 0 ? options.natsServer.map(binaryOf) : [findNatsServer()];
  const network = networkOf(program, options);
  process.stderr.write(`seed ${options.seed}: repeat with --seed ${options.seed}\n`);
  if (options.soak !== undefined) {
    return await soak({
      durationMs: durationMs(program, options.soak, "--soak"),
      binary: binaries[0]!,
      json: options.json,
      recoveryMsMax: options.recoveryMs,
      seed: options.seed,
    });
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => process.exit(128 + constants.signals[signal]));
  }
  const faultMs =
    options.walk === undefined ? undefined : durationMs(program, options.walk, "--walk");
  return await runAll({ ...options, ...chosenNow, binaries, faultMs, network });
}

interface Chosen {
  readonly named: readonly Scenario[];
  readonly effects: readonly EffectsScenario[];
  readonly imports: readonly Named[];
}

interface Named {
  readonly name: string;
  readonly title: string;
}

const importScenarios = [importKilled];

function allScenarios(): readonly Named[] {
  return [...scenarios, ...effectsScenarios, ...importScenarios];
}

function chosen(program: Command, names: readonly string[]): Chosen {
  const all = allScenarios().map(({ name }) => name);
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0)
    program.error(`no such scenario: ${unknown.join(", ")} (--list shows them all)`);
  const isNamed = ({ name }: { readonly name: string }): boolean =>
    names.length === 0 || names.includes(name);
  return {
    named: scenarios.filter(isNamed),
    effects: effectsScenarios.filter(isNamed),
    imports: importScenarios.filter(isNamed),
  };
}

function networkOf(program: Command, { network, soak: duration, delayMs }: Options): NetworkKind {
  if (duration !== undefined && delayMs !== undefined)
    program.error("--delay-ms: a soak has no delay");
  if (network === "namespaces" && delayMs !== undefined)
    program.error("--delay-ms: namespaces cannot delay; it takes --network proxies");
  if (duration !== undefined && network !== undefined)
    program.error("--network: a soak has one nats-server");
  if (duration !== undefined) return "proxies";
  const reason = delayMs === undefined ? "as requested" : "they cannot delay";
  const why = network === "proxies" || delayMs !== undefined ? reason : whyNoNamespaces();
  if (network === "namespaces" && why !== undefined)
    program.error(`--network: no namespaces can be made here: ${why}`);
  const kind = why === undefined ? "namespaces" : "proxies";
  process.stderr.write(
    `network between nodes: ${kind}${why === undefined ? "" : ` (no namespaces: ${why})`}\n`,
  );
  return kind;
}

function durationMs(program: Command, text: string, option: string): number {
  const match = /^(\d{1,5})([smh])$/.exec(text);
  if (match === null)
    return program.error(`${option}: must be a duration such as 90s, 60m or 2h: got "${text}"`);
  return Number(match[1]) * { s: 1_000, m: 60_000, h: 3_600_000 }[match[2] as "s" | "m" | "h"];
}

interface Plan extends Options, Chosen {
  readonly binaries: readonly string[];
  readonly faultMs: number | undefined;
  readonly network: NetworkKind;
}

async function runAll(plan: Plan): Promise<number> {
  const { named, effects, imports, binaries, faultMs, network, delayMs } = plan;
  const { short, json, recoveryMs: recoveryMsMax, seed, syncInterval } = plan;
  const form = short ? "short" : "full";
  const failures: string[] = [];
  const results: RunResult[] = [];
  const ofEffects: EffectsResult[] = [];
  const ofImports: ImportResult[] = [];
  for (const binary of binaries) {
    const natsVersion = versionOf(binary);
    const common = { form, binary, natsVersion, seed } as const;
    const attempt = async <R extends Findings>(
      { name, title }: Named,
      variant: string,
      run: () => Promise<R>,
    ): Promise<R[]> => {
      const what = `${name}${variant}, nats-server ${natsVersion}`;
      process.stderr.write(`${what}: ${title}\n`);
      try {
        const result = await run();
        for (const note of result.notes) process.stderr.write(`  ${note}\n`);
        for (const fault of result.faults) process.stderr.write(`  BROKEN: ${fault}\n`);
        return [result];
      } catch (error) {
        failures.push(`${what}: ${(error as Error).message}`);
        process.stderr.write(`  NOT RUN TO ITS END: ${(error as Error).message}\n`);
        return [];
      }
    };
    const ofLoads = { ...common, recoveryMsMax, network, syncInterval };
    const times = {
      ...(faultMs === undefined ? {} : { faultMs }),
      ...(delayMs === undefined ? {} : { delayMs }),
    };
    for (const scenario of named)
      for (const load of loadsOf(plan)) {
        const run = () => runScenario(scenario, { ...ofLoads, ...times, load });
        results.push(...(await attempt(scenario, `, ${load}`, run)));
      }
    for (const scenario of effects)
      for (const database of databasesOf(scenario)) {
        const run = () => runEffectsScenario(scenario, { ...common, database });
        ofEffects.push(...(await attempt(scenario, `, ${database}`, run)));
      }
    for (const scenario of imports)
      ofImports.push(...(await attempt(scenario, "", () => runImportKilled(common))));
  }
  if (results.length > 0) process.stdout.write(`\n${tableOf(results)}`);
  if (ofEffects.length > 0) process.stdout.write(`\n${effectsTableOf(ofEffects)}`);
  if (ofImports.length > 0) process.stdout.write(`\n${importTableOf(ofImports)}`);
  for (const failure of failures) process.stdout.write(`not run to its end: ${failure}\n`);
  if (json !== undefined) {
    const all = { seed, results, effects: ofEffects, imports: ofImports, failures };
    writeFileSync(json, `${JSON.stringify(all, undefined, 2)}\n`);
  }
  const isKept = [...results, ...ofEffects, ...ofImports].every(
    ({ faults }) => faults.length === 0,
  );
  return failures.length === 0 && isKept ? 0 : 1;
}

interface Findings {
  readonly notes: readonly string[];
  readonly faults: readonly string[];
}

function loadsOf({ load, walk }: Plan): readonly LoadName[] {
  if (load.length > 0) return load;
  return walk === undefined ? loadsDefault : ["mixed"];
}

function versionOf(binary: string): string {
  const text = execFileSync(binary, ["--version"], { encoding: "utf8" });
  return /\d+\.\d+\.\d+/.exec(text)?.[0] ?? "unknown";
}

process.exitCode = await main();
