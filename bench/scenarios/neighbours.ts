// The latency of one project's requests during an attack by another project or by clients without a
// key. Each request is measured alone and during several attacks. Only Penstock with the durable
// setting.

import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../harness/bench.ts";
import { batchBody, event, gzipped, singleBody } from "../harness/bodies.ts";
import { probeDisk } from "../harness/disk-probe.ts";
import { type Load, type LoadRun, runLoad } from "../harness/load.ts";
import { keyOf } from "../harness/nats.ts";
import { cpuSeconds, machineCpuSeconds } from "../harness/process-stats.ts";
import { openSession, type Session } from "../harness/session.ts";
import { startVariant } from "../harness/variants.ts";
import { type Attack, attacks } from "./attacks.ts";

const neighbour = 1;
/** With fewer than a hundred requests, p99 would be the maximum. */
const secondsOf = (kinds: readonly Kind[]): number =>
  kinds.includes("gzip") || kinds.includes("opened") ? 12 : 4;
const settleMs = 500;
const slackSeconds = 1;
/**
 * An attack with more connections uses much of two cores, so it gets a control that shows how much
 * of the latency the machine causes.
 */
const muchTraffic = 100;

type Alone = Pick<Attack, "name" | "neighbours">;
/** The control: the attack's bytes go to a bare server next to Penstock, which discards them. */
type Dropped = Attack & { readonly isDropped: true };
type Kind = "single" | "history" | "gzip" | "opened";
const titles: Readonly<Record<Kind, string>> = {
  single: "single events",
  history: "imports of 3 events",
  gzip: "batches of 1,000, gzip",
  opened: "single events, each on a new connection",
};

function loadsOf(kind: Kind, seconds: number): Load {
  const common = { name: titles[kind], connections: 8, seconds } as const;
  switch (kind) {
    case "opened":
      return {
        ...loadsOf("single", seconds),
        name: titles[kind],
        rate: 10,
        opensConnections: true,
      };
    case "single":
      return {
        ...common,
        path: "/capture/",
        bodies: [singleBody(0, neighbour)],
        eventsPerRequest: 1,
        rate: 100,
      };
    case "history":
      return { ...common, path: "/batch/", bodies: [importBody()], eventsPerRequest: 3, rate: 50 };
    case "gzip": {
      const bodies = [gzipped(batchBody(1_000, neighbour))];
      return {
        ...common,
        path: "/batch/",
        bodies,
        eventsPerRequest: 1_000,
        rate: 10,
        contentEncoding: "gzip",
      };
    }
  }
}

function importBody(): Buffer {
  const batch = [event(1), event(2), event(3)];
  return Buffer.from(
    JSON.stringify({ api_key: keyOf(neighbour), historical_migration: true, batch }),
  );
}

export async function neighbours(bench: Bench): Promise<void> {
  const rounds = bench.rounds(3);
  const chosen = attacks.filter(
    ({ name }) => bench.beside?.some((text) => name.includes(text)) ?? true,
  );
  const kinds = [...new Set(chosen.flatMap(({ neighbours: others }) => others))];
  for (let round = 1; round <= rounds; round++) {
    // The load without an attack runs first and last, because the machine rarely stays constant for
    // minutes.
    await measure(bench, round, { name: "alone", neighbours: kinds });
    for (const attack of chosen) {
      await measure(bench, round, attack);
      if (attack.connections >= muchTraffic)
        await measure(bench, round, { ...attack, isDropped: true });
    }
    await measure(bench, round, { name: "alone, at the end", neighbours: kinds });
  }
}

/** Each measurement has new processes, so that no attack is affected by an earlier one. */
async function measure(
  bench: Bench,
  round: number,
  condition: Alone | Attack | Dropped,
): Promise<void> {
  const { closedLoop } = bench;
  const kinds: readonly Kind[] = ["single", ...condition.neighbours];
  const attack = "load" in condition ? condition.load() : undefined;
  const seconds = secondsOf(kinds);
  const attackSeconds = seconds + settleMs / 1_000 + slackSeconds;
  const session = await openSession({
    variant: "penstock",
    sync: "always",
    projects: 2,
    settings: "load" in condition ? await condition.settings?.() : undefined,
    closedLoop,
  });
  const dropping =
    "isDropped" in condition ? await startVariant("ceiling", { natsUrl: "" }) : undefined;
  try {
    for (const kind of kinds) await session.warmUp(loadsOf(kind, seconds), 1);
    const disk = probeDisk();
    const servers = [session.server.child.pid, session.nats?.pid, dropping?.child.pid];
    const processes = [process.pid, ...servers];
    const usedBefore = used(processes);
    const beganMs = performance.now();
    // Each read of the gauge covers the time since the last read, so this read starts a new window.
    await loopDelayMax(session);
    const attacking =
      attack &&
      runLoad((dropping ?? session.server).url, { ...attack, seconds: attackSeconds }, closedLoop);
    if (attack !== undefined) await delay(settleMs);
    const runs = await Promise.all(
      kinds.map((kind) => runLoad(session.server.url, loadsOf(kind, seconds), closedLoop)),
    );
    const attacked = await attacking;
    const loopDelayMaxMs = await loopDelayMax(session);
    const clients = [...runs, ...(attacked === undefined ? [] : [attacked])];
    const ownSeconds = clients.reduce((sum, { clientCpuSeconds }) => sum + clientCpuSeconds, 0);
    const otherCores =
      (used(processes) - usedBefore - ownSeconds) / ((performance.now() - beganMs) / 1_000);
    const machine = {
      loopDelayMaxMs,
      fsyncP99Ms: await disk.stop(),
      otherCores: Math.max(0, otherCores),
    };
    for (const [index, kind] of kinds.entries()) {
      const where = attack === undefined ? `, ${condition.name}` : ` beside ${condition.name}`;
      const scenario = titles[kind] + where + (dropping === undefined ? "" : ", dropped elsewhere");
      const ofAttack = dropping === undefined ? valuesOfAttack(attacked) : {};
      const values = { ...valuesOf(runs[index]!), ...ofAttack, ...machine };
      bench.note({
        group: "neighbours",
        scenario,
        variant: "penstock",
        sync: "always",
        round,
        values,
      });
    }
  } finally {
    await dropping?.child.end();
    await session.close();
  }
}

function used(processes: readonly (number | undefined)[]): number {
  return machineCpuSeconds() - processes.reduce<number>((sum, pid) => sum + cpuSeconds(pid), 0);
}

function valuesOf({ latencyMs, requests, refused, failed }: LoadRun): Record<string, number> {
  const { p50 = Number.NaN, p99 = Number.NaN, max = Number.NaN } = latencyMs ?? {};
  return { p50, p99, max, stored: requests - refused, notStored: refused + failed };
}

function valuesOfAttack(run: LoadRun | undefined): Record<string, number> {
  return run === undefined
    ? {}
    : { attackStored: run.requests - run.refused, attackRefused: run.refused };
}

async function loopDelayMax(session: Session): Promise<number> {
  const text = await (await fetch(`${session.server.adminUrl}/metrics`)).text();
  return Number(/^penstock_event_loop_delay_seconds\{stat="max"\} (\S+)$/m.exec(text)?.[1]) * 1_000;
}
