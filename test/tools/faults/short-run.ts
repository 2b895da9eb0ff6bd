// The short form of a fault scenario, for one test: faults of a second, and generous time to come
// back, because other tests share the machine. `npm run faults` runs the same scenarios longer, on
// more than one nats-server, and holds them to 3 s.

import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { expect } from "vitest";
import { findNatsServer } from "../../../testkit/nats-server.ts";
import type { NetworkKind } from "../../../tools/faults/cluster-network.ts";
import { type RunResult, runScenario } from "../../../tools/faults/run-scenario.ts";
import type { Scenario } from "../../../tools/faults/scenario.ts";

const recoveryMsMax = 10_000;

/** Runs it, and expects that events were acknowledged and that no promise was broken. */
export async function shortRun(
  scenario: Scenario,
  binary: string = findNatsServer(),
  network: NetworkKind = "proxies",
): Promise<RunResult> {
  const natsVersion = execFileSync(binary, ["--version"], { encoding: "utf8" }).trim();
  const seed = randomInt(2 ** 32);
  const result = await runScenario(scenario, {
    load: "mixed",
    form: "short",
    binary,
    natsVersion,
    recoveryMsMax,
    seed,
    network,
  });
  expect(result.faults, result.notes.join("\n")).toEqual([]);
  // What is known to be lost is no fault where it was told.
  if (scenario.knownLoss === undefined) expect(result.lost).toBe(0);
  expect(result.acknowledged).toBeGreaterThan(0);
  return result;
}

/** Requests with an answer that starts so. */
export function answered(result: RunResult, start: string): number {
  const counts = Object.entries(result.answers).filter(([label]) => label.startsWith(start));
  return counts.reduce((sum, [, count]) => sum + count, 0);
}
