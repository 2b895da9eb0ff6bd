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
/** V8 compiles some functions only after seconds of load. */
const warmUpBursts = 5;
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
  /** The file of rules. It must keep all events of the bodies, so that all projects store the same. */
  readonly text?: string;
  /** By load: the maximum CPU time of the gateway for an event, against no rules. */
  readonly targets?: Readonly<Record<string, number>>;
}

const changeTargets = { [hundreds]: 1.15 };
const none: RuleSet = { name: "no rules" };
export const ruleSets: readonly RuleSet[] = [
  none,
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
    text: "rules: [{ name: width, remove: [$screen_width, $set.email] }]",
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

interface Cell {
  readonly set: RuleSet;
  readonly project: number;
  readonly load: Load;
}

export async function rules(bench: Bench): Promise<void> {
  const rounds = bench.rounds(10);
  const roundsEach = Math.ceil(rounds / sessions);
  for (const { load, bodyOf } of loads) {
    const cells = ruleSets.map((set, project) => ({
      set,
      project,
      load: { ...load, bodies: [bodyOf(project)] },
    }));
    for (let first = 1; first <= rounds; first += roundsEach) {
      const session = await openSession({
        variant: "penstock",
        sync: "always",
        projects: cells.length,
        closedLoop: bench.closedLoop,
      });
      try {
        await apply(session, cells);
        await warmUp(session, cells);
        const end = Math.min(first + roundsEach, rounds + 1);
        for (let round = first; round < end; round++)
          await measureRound(bench, session, { cells, round });
      } finally {
        await session.close();
      }
    }
  }
}

/** Resolves when the gateway uses all rules. */
async function apply({ nats, server }: Session, cells: readonly Cell[]): Promise<void> {
  const waiting = new Set<string>();
  const applied = cells.map(async ({ set: { name, text }, project }) => {
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

async function warmUp({ nats, warmUp }: Session, cells: readonly Cell[]): Promise<void> {
  for (let burst = 0; burst < warmUpBursts; burst++) {
    for (const { load } of cells) {
      await warmUp(load, burstSeconds);
      await nats!.purge();
    }
  }
}

async function measureRound(
  bench: Bench,
  session: Session,
  { cells, round }: { readonly cells: readonly Cell[]; readonly round: number },
): Promise<void> {
  const measured = new Map<RuleSet, Measurement>();
  for (const { set, load } of inOrder(cells, round)) measured.set(set, await session.measure(load));
  const base = measured.get(none)!;
  for (const { set, load } of cells) {
    const own = measured.get(set)!;
    const values = {
      cpuRatio: own.serverCpuSecondsPerMillion / base.serverCpuSecondsPerMillion,
      rateRatio: own.eventsPerSecond / base.eventsPerSecond,
      ...valuesOf(own),
    };
    const where = {
      group: "rules",
      scenario: load.name,
      variant: set.name,
      sync: "always",
    } as const;
    bench.note({ ...where, round, values });
  }
}
