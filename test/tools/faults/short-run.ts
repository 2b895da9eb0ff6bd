// The time to recover is generous, because other tests share the machine.

import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import type { NetworkKind } from "../../faults/cluster-network.ts";
import { type RunResult, runScenario } from "../../faults/run-scenario.ts";
import type { Scenario } from "../../faults/scenario.ts";
import { scenarios } from "../../faults/scenarios.ts";
import { findNatsServer, oldestNatsServer } from "../../kit/nats-server.ts";
import { networkKindsHere } from "./network-kinds.ts";
import type { Count, ShortRun } from "./scenario-table.ts";

const recoveryMsMax = 10_000;

export function testShortRuns(runs: readonly ShortRun[]): void {
  for (const run of runs) {
    const network = networkOf(run);
    const by = run.network === undefined ? "" : `, by ${network}`;
    const options = run.timeoutMs === undefined ? {} : { timeout: run.timeoutMs };
    test(`${run.scenario}: ${run.shows}${by}`, options, async () => {
      const binary = run.server === "oldest" ? oldestNatsServer() : findNatsServer();
      await shortRun(run, { binary, network });
    });
  }
}

function networkOf({ network }: ShortRun): NetworkKind {
  return network === "namespaces where they can be made" ? networkKindsHere().at(-1)! : "proxies";
}

async function shortRun(
  run: ShortRun,
  { binary, network }: { readonly binary: string; readonly network: NetworkKind },
): Promise<void> {
  const scenario = scenarioNamed(run.scenario);
  const natsVersion = execFileSync(binary, ["--version"], { encoding: "utf8" }).trim();
  const result = await runScenario(scenario, {
    load: run.load ?? "mixed",
    form: "short",
    binary,
    natsVersion,
    recoveryMsMax,
    seed: randomInt(2 ** 32),
    network,
  });
  expect(result.faults, result.notes.join("\n")).toEqual([]);
  // Known losses are accepted if the gateway reported them.
  if (scenario.knownLoss === undefined) expect(result.lost).toBe(0);
  expect(result.acknowledged).toBeGreaterThan(0);
  for (const [start, count] of Object.entries(run.answers ?? {})) {
    expectCount(answered(result, start), count, `answers that begin with ${start}`);
  }
  for (const kind of ["lost", "duplicated", "unknown", "storedThoughUnknown"] as const) {
    const count = run.events?.[kind];
    if (count !== undefined) expectCount(result[kind], count, `events ${kind}`);
  }
  if (run.notes !== undefined) expect(result.notes).toHaveLength(run.notes);
}

function scenarioNamed(name: string): Scenario {
  const scenario = scenarios.find((one) => one.name === name);
  if (scenario === undefined) throw new Error(`run ${name}: test/faults has no such scenario`);
  return scenario;
}

function answered(result: RunResult, start: string): number {
  const counts = Object.entries(result.answers).filter(([label]) => label.startsWith(start));
  return counts.reduce((sum, [, count]) => sum + count, 0);
}

function expectCount(found: number, count: Count, what: string): void {
  if (count === "none") expect(found, what).toBe(0);
  else expect(found, what).toBeGreaterThan(count === "some" ? 0 : 100);
}
