// What the upgrade tests share: readers of either release, a sender of people, and an independent
// count of the streams.

import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { Child } from "../../../bench/harness/child.ts";
import { readMessages } from "../../../bench/load/stored.ts";
import { lanes } from "../../../src/platform/nats/names.ts";
import type { Driver } from "../../faults/driver.ts";
import { createEvents, type Events, keyOf } from "../../faults/event-kinds.ts";
import { lostAnswers } from "../../faults/lost-answers.ts";
import { brokenPromises } from "../../faults/run-scenario.ts";
import type { GatewayProcess, Store } from "../../faults/scenario.ts";
import type { LoadShape } from "../../faults/senders.ts";
import { createStreamReader } from "../../faults/settle.ts";
import { freePort } from "../../kit/free-port.ts";
import { asked } from "../../kit/postgres-rows.ts";
import { type Release, run, start } from "./releases.ts";

type Env = Readonly<Record<string, string>>;

/** About 600 events per second. */
export const lightLoad: LoadShape = {
  singleConnections: 8,
  singlePauseMs: 100,
  batchConnections: 4,
  batchPauseMs: 300,
  batchEvents: 20,
  largePauseMs: 15_000,
  importPauseMs: 150,
  largeImportEvery: 200,
};
const eventsOfKindMax = 500_000;
const peopleProject = "people";
const pollMs = 50;
const caughtUpMsMax = 60_000;
const readyMsMax = 30_000;

export function newEvents(): Events {
  return createEvents(eventsOfKindMax);
}

/** Adds the projects of the load and of the people with the release's own command. */
export async function addAllProjects(release: Release, events: Events, env: Env): Promise<void> {
  for (const id of [...events.projects, peopleProject]) await addProject(release, id, env);
}

export async function addProject(release: Release, id: string, env: Env): Promise<void> {
  const { code, output } = await run(release, ["project", "add", id, "--key", keyOf(id)], env);
  if (code !== 0) throw new Error(`add project ${id}: exit ${code}\n${output}`);
}

/** `penstock effects run` or `penstock sink …` of either release. */
export interface Reader {
  /** Default: SIGTERM, after which the exit code must be 0. */
  end(signal?: NodeJS.Signals): Promise<void>;
  /** Starts a release in place of the ended one. Resolves when it is ready. */
  start(release: Release): Promise<void>;
}

/** Resolves when the reader is ready. `env` names the NATS and the database. */
export async function startReader(
  release: Release,
  args: readonly string[],
  env: Env,
): Promise<Reader> {
  const port = await freePort();
  const ports = portsOf(port);
  let child = start(release, args, { ...env, ...ports });
  await untilReady(child, port);
  return {
    async end(signal = "SIGTERM") {
      await child.end(signal);
      const { exitCode } = child.process;
      if (signal === "SIGTERM" && exitCode !== 0)
        throw new Error(`end ${args.join(" ")}: exit ${exitCode}\n${child.said()}`);
    },
    async start(other) {
      child = start(other, args, { ...env, ...ports });
      await untilReady(child, port);
    },
  };
}

function portsOf(port: number): Env {
  return { PENSTOCK_EFFECTS_PORT: String(port), PENSTOCK_SINK_PORT: String(port) };
}

async function untilReady(child: Child, port: number): Promise<void> {
  const deadline = performance.now() + readyMsMax;
  for (;;) {
    const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (ready?.status === 200) return;
    if (performance.now() > deadline || child.process.exitCode !== null)
      throw new Error(`start a reader: not ready: ${await ready?.text()}\n${child.said()}`);
    await delay(pollMs);
  }
}

interface Refusal {
  readonly env: Env;
  readonly message: RegExp;
}

/** Starts a reader that must not become ready, and ends it when it has logged the message. */
export async function refusalOf(
  release: Release,
  args: readonly string[],
  { env, message }: Refusal,
): Promise<void> {
  const child = start(release, args, { ...env, ...portsOf(0) });
  try {
    await child.line((line) => message.test(line) || undefined, readyMsMax);
  } finally {
    await child.end();
  }
}

export interface PeopleSender {
  /** Sends what is left of the users that were begun. Resolves with the number of users. */
  stop(): Promise<number>;
}

/** The users between an anonymous event and its `$identify`, which another release may store. */
const usersBetween = 20;
export const companies = 5;
const eventsOfUser = 4;
const peoplePauseMs = 20;

/**
 * Sends events that make people and groups, to each URL in turn: each user has two distinct ids and
 * one of a few companies. Sends an event again, with the same uuid, until the answer is 200.
 */
export function sendPeople(urls: readonly string[]): PeopleSender {
  let isStopping = false;
  let users = 0;
  let sent = 0;

  async function send(event: object): Promise<void> {
    const uuid = `0${String(++sent).padStart(7, "0")}-0000-7000-8000-00000000aaaa`;
    const timestamp = new Date().toISOString();
    const body = JSON.stringify({ api_key: keyOf(peopleProject), uuid, timestamp, ...event });
    for (let tries = 0; ; tries++) {
      const url = `${urls[(sent + tries) % urls.length]}/capture/`;
      const answer = await fetch(url, { method: "POST", body }).catch(() => undefined);
      if (answer?.status === 200) return;
      if (answer !== undefined && answer.status < 500)
        throw new Error(`send people: ${answer.status} ${await answer.text()}`);
      await delay(peoplePauseMs);
    }
  }

  async function identify(user: number): Promise<void> {
    const company = `company-${user % companies}`;
    const person = { distinct_id: `user-${user}` };
    const identified = { $anon_distinct_id: `anon-${user}`, $set: { plan: `plan-${user % 3}` } };
    await send({ ...person, event: "$identify", properties: identified });
    await send({ ...person, event: "paid", properties: { $groups: { company }, amount: user } });
    const group = { $group_type: "company", $group_key: company, $group_set: { size: 7 } };
    await send({ ...person, event: "$groupidentify", properties: group });
  }

  async function work(): Promise<number> {
    for (; !isStopping || users < companies + usersBetween; users++) {
      await send({ event: "seen", distinct_id: `anon-${users}`, properties: {} });
      if (users >= usersBetween) await identify(users - usersBetween);
      await delay(peoplePauseMs);
    }
    for (let user = users - usersBetween; user < users; user++) await identify(user);
    return users;
  }

  const working = work();
  working.catch(() => {});
  return {
    stop() {
      isStopping = true;
      return working;
    },
  };
}

interface Sent {
  readonly driver: Driver;
  readonly gateways: readonly GatewayProcess[];
  /** Maximum number of requests without an answer; undefined if a gateway was killed. */
  readonly answersLostMax: number | undefined;
}

/** The beginning of the usage of the people project: each user's events are stored. */
export function usageOfPeople(users: number): string {
  return `${peopleProject} live: ${users * eventsOfUser},`;
}

/** Compares every answer of the load with the streams. Returns the broken promises. */
export async function ledgerFaults(
  store: Store,
  events: Events,
  { driver, gateways, answersLostMax }: Sent,
): Promise<{ readonly faults: readonly string[]; readonly acknowledged: number }> {
  const reader = createStreamReader(store, events, [peopleProject]);
  await reader.read();
  const settlement = reader.settlement();
  const { counts, strange } = driver;
  const closings = gateways.flatMap((gateway) => gateway.closings());
  return {
    acknowledged: settlement.acknowledged,
    faults: [
      ...brokenPromises(settlement),
      ...strange,
      ...lostAnswers(counts.lostMs, closings, answersLostMax),
    ],
  };
}

interface CountedStreams {
  /** The number of stored copies of each event, by project, uuid, name and distinct id. */
  readonly copies: ReadonlyMap<string, number>;
  /** `project lane: events, duplicates` for each project and lane. */
  readonly usage: readonly string[];
  /** `project: persons, distinct ids` for each project, if `users` of the people project merge. */
  readonly persons: readonly string[];
}

interface StoredRecord {
  readonly project_id: string;
  readonly uuid: string;
  readonly event: string;
  readonly distinct_id: string;
  readonly historical: boolean;
}

/** Counts what the streams have, without the code of effects and sinks. */
export async function countStreams(
  connection: NatsConnection,
  users: number,
): Promise<CountedStreams> {
  const copies = new Map<string, number>();
  const usage = new Map<string, { events: number; duplicates: number }>();
  const ids = new Map<string, Set<string>>();
  const onLine = (record: StoredRecord): void => {
    const { project_id: project, uuid, event, distinct_id: id, historical } = record;
    const key = keyOfEvent(project, uuid, event, id);
    const known = copies.get(key) ?? 0;
    copies.set(key, known + 1);
    const row = `${project} ${historical ? "historical" : "live"}`;
    const { events, duplicates } = usage.get(row) ?? { events: 0, duplicates: 0 };
    const isFirst = known === 0;
    usage.set(row, {
      events: events + (isFirst ? 1 : 0),
      duplicates: duplicates + (isFirst ? 0 : 1),
    });
    ids.set(project, (ids.get(project) ?? new Set()).add(id));
  };
  const manager = await jetstreamManager(connection);
  for (const lane of lanes) {
    const subject = `penstock.${lane}.*.*`;
    for await (const stream of manager.streams.names(subject)) {
      await readMessages(connection, { stream, lastSequence: 0, subject }, ({ data }) => {
        const lines = Buffer.from(data).toString("utf8").split("\n").slice(0, -1);
        for (const line of lines) onLine(JSON.parse(line) as StoredRecord);
      });
    }
  }
  const merged = (project: string): number => (project === peopleProject ? users : 0);
  return {
    copies,
    usage: [...usage]
      .map(([row, { events, duplicates }]) => `${row}: ${events}, ${duplicates}`)
      .sort(),
    persons: [...ids]
      .map(([project, { size }]) => `${project}: ${size - merged(project)}, ${size}`)
      .sort(),
  };
}

function keyOfEvent(project: string, uuid: string, event: string, id: string): string {
  return [project, uuid, event, id].join(" ");
}

/** The rows of the sink's table `events`. */
type SinkRows = readonly Record<string, unknown>[];
export const sinkColumns = "project_id, uuid, event, distinct_id";

/**
 * Every event must be there, and none more often than it is stored. With `isUnique`, exactly once.
 */
export function sinkFaults(
  rows: SinkRows,
  copies: CountedStreams["copies"],
  { isUnique }: { readonly isUnique: boolean },
): string[] {
  const found = new Map<string, number>();
  for (const { project_id: project, uuid, event, distinct_id: id } of rows) {
    const key = keyOfEvent(String(project), String(uuid), String(event), String(id));
    found.set(key, (found.get(key) ?? 0) + 1);
  }
  const lost = [...copies.keys()].filter((key) => !found.has(key));
  const allowed = (key: string): number => {
    const stored = copies.get(key) ?? 0;
    return isUnique ? Math.min(1, stored) : stored;
  };
  const tooOften = [...found].filter(([key, count]) => count > allowed(key));
  return [
    ...(lost.length === 0 ? [] : [`${lost.length} events are not in the sink: ${lost[0]}`]),
    ...(tooOften.length === 0
      ? []
      : [`${tooOften.length} events are in the sink more often than stored: ${tooOften[0]}`]),
  ];
}

/** What `penstock effects verify` prints if the database equals one that is built anew. */
export const matches = /^the database matches the streams \(\d+ messages\)\n$/;

/** The totals of the effects, as `countStreams` returns them. */
interface EffectsTotals extends Pick<CountedStreams, "usage" | "persons"> {
  readonly groups: number;
}

/** Runs a query on the database of the effects: a SQLite file, or a URL of PostgreSQL. */
async function askEffects(at: string, sql: string): Promise<Record<string, unknown>[]> {
  if (at.startsWith("postgres:")) return await asked(at, sql.replaceAll("$", "penstock_effects."));
  const db = new DatabaseSync(at, { readOnly: true });
  try {
    return db.prepare(sql.replaceAll("$", "")).all();
  } finally {
    db.close();
  }
}

export async function effectsTotals(at: string): Promise<EffectsTotals> {
  const usage = await askEffects(
    at,
    "SELECT project_id, lane, sum(events) AS events, sum(duplicates) AS again FROM $usage_daily GROUP BY 1, 2",
  );
  const persons = await askEffects(
    at,
    "SELECT project_id, count(*) AS persons, sum(distinct_ids_total) AS ids FROM $persons GROUP BY 1",
  );
  const [groups] = await askEffects(at, "SELECT count(*) AS count FROM $groups");
  return {
    usage: usage
      .map(
        ({ project_id: project, lane, events, again }) => `${project} ${lane}: ${events}, ${again}`,
      )
      .sort(),
    persons: persons
      .map(({ project_id: project, persons: count, ids }) => `${project}: ${count}, ${ids}`)
      .sort(),
    groups: Number(groups?.["count"]),
  };
}

export async function effectsPositions(at: string): Promise<Record<string, number>> {
  const rows = await askEffects(at, "SELECT stream, sequence FROM $positions");
  return Object.fromEntries(rows.map(({ stream, sequence }) => [stream, Number(sequence)]));
}

/** Resolves when the reader has committed all that the streams have. Rejects after a minute. */
export async function untilCaughtUp(
  connection: NatsConnection,
  positions: () => Promise<Record<string, number>>,
): Promise<void> {
  const manager = await jetstreamManager(connection);
  const deadline = performance.now() + caughtUpMsMax;
  for (;;) {
    const left: string[] = [];
    const there = await positions().catch((): Record<string, number> => ({}));
    for (const lane of lanes) {
      for await (const stream of manager.streams.names(`penstock.${lane}.*.*`)) {
        const { state } = await manager.streams.info(stream);
        const at = there[stream] ?? 0;
        if (at < state.last_seq) left.push(`${stream}: ${at} of ${state.last_seq}`);
      }
    }
    if (left.length === 0) return;
    if (performance.now() > deadline) throw new Error(`catch up: ${left.join("; ")}`);
    await delay(pollMs);
  }
}
