// What rules cost a whole gateway. The gateway has a project for each set of rules, and bursts of a
// load alternate between the projects. Every burst is compared with the burst of the project without
// rules in the same round. A second project without rules shows the noise of the measurement.

import { applyRules } from "../../src/gateway/projects/rules/versions.ts";
import { parseRules } from "../../src/rules/parse.ts";
import { type Bench, inOrder, valuesOf } from "../harness/bench.ts";
import { batchBody, singleBody } from "../harness/bodies.ts";
import type { Load } from "../harness/load.ts";
import { prefix, projectIdOf } from "../harness/nats.ts";
import { type Measurement, openSession, type Session } from "../harness/session.ts";
import { batches, singles } from "./loads.ts";

const burstSeconds = 1;
/**
 * V8 compiles some functions only after seconds of load, and compiles again when the metrics are
 * read for the first time. So these rounds are measured too, but not noted.
 */
const warmUpRounds = 5;
const inUseMsMax = 10_000;
/** V8 may compile a function differently in other processes. */
const sessions = 2;

const loads = [
  { load: singles(128, burstSeconds), bodyOf: (project: number) => singleBody(0, project) },
  { load: batches(100, burstSeconds), bodyOf: (project: number) => batchBody(100, project) },
] as const;
const [singleEvents, hundreds] = [loads[0].load.name, loads[1].load.name];

interface RuleSet {
  readonly name: string;
  /** The rules file. It must not filter an event of the bodies, so that all projects store as many. */
  readonly text?: string;
  /** By load: the maximum CPU time of the gateway for an event, against no rules. */
  readonly targets?: Readonly<Record<string, number>>;
}

const changeTargets = { [hundreds]: 1.15 };
const noRules = "no rules";
export const ruleSets: readonly RuleSet[] = [
  { name: noRules },
  { name: "no rules, second project" },
  {
    name: "names, IP and sampling",
    text: `
privacy: { ip: truncate }
rules:
  - { name: heartbeats, match: { event: [heartbeat, "ping*"] }, drop: true }
  - { name: all, match: { event: [$pageview, button clicked] }, sample: 0.999999 }
`,
    targets: { [singleEvents]: 1.03, [hundreds]: 1.03 },
  },
  {
    name: "a property removed",
    text: "rules: [{ name: width, remove: [$screen_width] }]",
    targets: changeTargets,
  },
  {
    name: "a property set",
    text: "rules: [{ name: source, set: { source: web } }]",
    targets: changeTargets,
  },
  {
    name: "a condition on a property",
    text: "rules: [{ name: internal, match: { properties: { plan: internal } }, drop: true }]",
    targets: changeTargets,
  },
  { name: "schema of 5 properties, observe", text: schemas("observe"), targets: changeTargets },
  { name: "schema of 5 properties, stamp", text: schemas("stamp"), targets: changeTargets },
  // The addon applies the other rules that change events. JavaScript applies those with a condition.
  {
    name: "a property set under a condition",
    text: "rules: [{ name: source, match: { properties: { $lib: web } }, set: { source: web } }]",
  },
  { name: "a property hashed", text: "rules: [{ name: session, hash: [$session_id] }]" },
];

function schemas(mode: "observe" | "stamp"): string {
  const properties = {
    type: "object",
    required: ["plan"],
    properties: {
      plan: { enum: ["free", "pro"] },
      duration_seconds: { type: "number", minimum: 0 },
      $screen_width: { type: "integer" },
      $current_url: { type: "string", pattern: "^https?://", maxLength: 200 },
      title: { type: ["string", "null"] },
    },
  };
  const events = ["$pageview", "button clicked"];
  const list = events.map((event) => ({ event, version: 1, mode, properties }));
  return JSON.stringify({ rules: [], schemas: list });
}

export async function rules(bench: Bench): Promise<void> {
  const rounds = bench.rounds(10);
  const roundsEach = Math.ceil(rounds / sessions);
  for (const { load, bodyOf } of loads) {
    const cells = ruleSets.map(({ name }, project) => ({
      name,
      load: { ...load, bodies: [bodyOf(project)] },
    }));
    for (let first = 1; first <= rounds; first += roundsEach) {
      const session = await openSession({
        variant: "penstock",
        sync: "always",
        projects: ruleSets.length,
        closedLoop: bench.closedLoop,
      });
      try {
        await applyAll(session);
        for (let round = 1; round <= warmUpRounds; round++)
          await measureRound(session, inOrder(cells, round));
        const end = Math.min(first + roundsEach, rounds + 1);
        for (let round = first; round < end; round++) {
          const measured = await measureRound(session, inOrder(cells, round));
          const base = measured.get(noRules)!;
          for (const [variant, own] of measured) {
            const values = { ...ratiosOf(own, base), ...valuesOf(own) };
            const where = { group: "rules", scenario: load.name, variant, sync: "always" } as const;
            bench.note({ ...where, round, values });
          }
        }
      } finally {
        await session.close();
      }
    }
  }
}

/** Applies the rules of all projects. Resolves when the gateway uses them. */
async function applyAll({ nats, server }: Session): Promise<void> {
  const waiting = new Set<string>();
  const applied = ruleSets.map(async ({ name, text }, project) => {
    if (text === undefined) return;
    const parsed = parseRules(text);
    if ("errors" in parsed) throw new Error(`rules "${name}": ${parsed.errors[0]!.message}`);
    const id = projectIdOf(project);
    waiting.add(id);
    await applyRules(nats!.connection, { prefix, replicas: 1, id, text, author: "bench" });
  });
  const inUse = server.child.line((line) => {
    if (line.includes('"rules: in use"'))
      waiting.delete((JSON.parse(line) as { project: string }).project);
    return waiting.size === 0 ? true : undefined;
  }, inUseMsMax);
  await Promise.all([...applied, inUse]);
}

interface Cell {
  readonly name: string;
  readonly load: Load;
}

async function measureRound(
  session: Session,
  cells: readonly Cell[],
): Promise<Map<string, Measurement>> {
  const measured = new Map<string, Measurement>();
  for (const { name, load } of cells) measured.set(name, await session.measure(load));
  return measured;
}

function ratiosOf(own: Measurement, base: Measurement): Record<string, number> {
  return {
    cpuRatio: own.serverCpuSecondsPerMillion / base.serverCpuSecondsPerMillion,
    rateRatio: own.eventsPerSecond / base.eventsPerSecond,
  };
}
