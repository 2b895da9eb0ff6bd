// Runs one scenario: starts store and gateway, drives the load, waits for recovery, reads the
// streams, and reports broken promises.

import { setTimeout as delay } from "node:timers/promises";
import type { MetricName } from "../../src/gateway/admin/metrics/metric-table.ts";
import { addProject } from "../../src/gateway/projects/registry/commands.ts";
import { batchCounts } from "./batch-counts.ts";
import { batchBody, eventTexts } from "./bodies.ts";
import type { NetworkKind } from "./cluster-network.ts";
import { isCluster } from "./cluster-watch.ts";
import { connectReader } from "./connect-reader.ts";
import { type Driver, startDriver } from "./driver.ts";
import { createEventsOf, type Events, keyOf, type LoadName } from "./event-kinds.ts";
import { emptyStreams, fillStreams } from "./filler.ts";
import { known } from "./known-project.ts";
import { leftoversOf } from "./leftovers.ts";
import { lostAnswers } from "./lost-answers.ts";
import { isOlder } from "./nats-version.ts";
import { randomFrom } from "./random.ts";
import { differencesOf } from "./replicas.ts";
import { ruledProject } from "./rules/ruled-events.ts";
import type { RulesTotals } from "./rules/rules-ledger.ts";
import { RulesLoad } from "./rules/rules-load.ts";
import type {
  GatewayProcess,
  Scenario,
  ScenarioContext,
  ScenarioResult,
  Store,
} from "./scenario.ts";
import type { LoadShape } from "./senders.ts";
import { createStreamReader, type Settlement } from "./settle.ts";
import { createSite, type Site } from "./stores.ts";

interface RunOptions {
  readonly load: LoadName;
  readonly form: "short" | "full";
  readonly binary: string;
  readonly natsVersion: string;
  readonly syncInterval?: string | undefined;
  readonly recoveryMsMax: number;
  readonly seed: number;
  readonly faultMs?: number;
  readonly network: NetworkKind;
  readonly delayMs?: number;
}

export interface RunResult extends ScenarioResult {
  readonly notes: readonly string[];
  readonly answers: Readonly<Record<string, number>>;
  /** Only of the load `rules`. */
  readonly rules?: RulesTotals;
}

const subjectPrefix = "penstock";
const loadShapes: Readonly<Record<RunOptions["form"], LoadShape>> = {
  short: {
    singleConnections: 12,
    singlePauseMs: 30,
    batchConnections: 4,
    batchPauseMs: 60,
    batchEvents: 20,
    largePauseMs: 2_000,
    importPauseMs: 30,
    largeImportEvery: 50,
  },
  full: {
    singleConnections: 48,
    singlePauseMs: 1,
    batchConnections: 8,
    batchPauseMs: 1,
    batchEvents: 50,
    largePauseMs: 500,
    importPauseMs: 1,
    largeImportEvery: 50,
  },
};
const warmUpEvents = { short: 300, full: 5_000 };
/** A shorter break of 200 answers may be caused by a busy machine. */
const breakMs = { short: 2_000, full: 500 };
const settledMs = { short: 700, full: 1_500 };
/** Recovery is observed beyond the allowed time, so that the figure of a late recovery is known. */
const recoveryWatchMs = 20_000;

export async function runScenario(scenario: Scenario, options: RunOptions): Promise<RunResult> {
  const delayMs = distanceOf(scenario, options);
  const site = await createSite(scenario, { ...options, delayMs });
  const notes = delayMs === 0 ? [] : [`the gateway is ${delayMs} ms from the store, each way`];
  try {
    return await attack(scenario, site, { ...options, notes });
  } catch (error) {
    const said = [
      `run ${scenario.name}: ${(error as Error).message}`,
      ...notes,
      site.gateway.log().slice(-4_000),
    ];
    throw new Error(said.join("\n"), { cause: error });
  } finally {
    await site.remove();
  }
}

/** The distance does not change the random choices of a scenario. */
function distanceOf(
  { topology, delayMs }: Scenario,
  { network, seed, ...options }: RunOptions,
): number {
  if (topology === "embedded" || (topology === "networked" && network === "namespaces")) return 0;
  return options.delayMs ?? delayMs?.(randomFrom(seed + 1)) ?? 0;
}

interface Attack extends RunOptions {
  readonly notes: string[];
}

async function attack(scenario: Scenario, site: Site, options: Attack): Promise<RunResult> {
  const { store, gateway } = site;
  const { form, load, notes } = options;
  const events = createEventsOf(load, form);
  await addProjects(store, gateway, events);
  const rules =
    load === "rules"
      ? new RulesLoad({ store, gateway, scenario, form, random: randomFrom(options.seed + 2) })
      : undefined;
  await rules?.start();
  const driver = startDriver({
    urls: [gateway.url],
    events,
    load,
    shape: scenario.shape ?? loadShapes[form],
    mayLoseConnections: scenario.mayLoseConnections ?? false,
    mayRefuse: scenario.mayRefuse,
    breakMs: breakMs[form],
  });
  let recoveryMs: number | undefined;
  try {
    await driver.acknowledged(warmUpEvents[form]);
    driver.faultBegun();
    await scenario.run(contextOf({ scenario, site, options, driver, events, notes }));
    driver.faultEnded();
    recoveryMs = await driver.recovered(settledMs[form], recoveryWatchMs);
    await rules?.end();
  } finally {
    await Promise.all([driver.stop(), rules?.stop()]);
  }
  const leftovers = await leftoversOf(gateway);
  const toldOfLoss = await hasToldOfLoss(gateway);
  if (load === "projects") notes.push(await batchCounts(gateway));
  await rules?.takeMetrics();
  // A running gateway would continue to record the projects' usage.
  if (isCluster(store)) await gateway.kill("SIGKILL");
  const differences = isCluster(store) ? await differencesOf(store) : [];
  const [readUrl, secondUrl] = isCluster(store)
    ? store.nodes.map(({ url }) => url)
    : [store.readerUrl, store.readerUrl];
  const readStore = { ...store, readerUrl: readUrl! };
  const reader = createStreamReader(readStore, events, rules === undefined ? [] : [ruledProject]);
  await reader.read();
  const ruled = await rules?.settle(readStore);
  if (ruled !== undefined) notes.push(ruled.note);
  const { strange, counts } = driver;
  const settlement = reader.settlement();
  if (settlement.lost > 0)
    notes.push(await secondReading({ ...store, readerUrl: secondUrl! }, events));
  const mayLose =
    isLossKnown(scenario, options) && (toldOfLoss || scenario.knownLoss?.isSilent === true);
  if (mayLose) notes.push(...differences);
  // A server that loses messages also loses the message ids, so it does not recognise a retry.
  const forgiven = mayLose ? { lost: 0, duplicatedOwnFrames: 0 } : {};
  const {
    storedThoughRefusedForNow: _,
    duplicatedWithoutCause: __,
    duplicatedOwnFrames: ___,
    damaged: ____,
    ...totals
  } = settlement;
  // A fault that causes no rejection only delays answers. It is over after the last late answer.
  const recovery = { recoveryMs, nothingRefused: counts.refused + counts.unknown === 0 };
  return {
    ...totals,
    ...(ruled === undefined ? {} : { rules: ruled.totals }),
    strangeAnswers: strange,
    scenario: scenario.name,
    load,
    natsVersion: options.natsVersion,
    recoveryMs: recovery.nothingRefused ? undefined : recoveryMs,
    faults: [
      ...brokenPromises({ ...settlement, ...forgiven }),
      ...(mayLose ? [] : differences),
      ...(ruled?.faults ?? []),
      ...strange,
      ...leftovers,
      ...lostAnswers(counts.lostMs, gateway.closings(), scenario.answersLostMax),
      ...(mayLose ? [] : lateRecovery(scenario, recovery, options)),
    ],
    notes,
    answers: Object.fromEntries(counts.answers),
  };
}

function isLossKnown({ knownLoss }: Scenario, { natsVersion }: RunOptions): boolean {
  return (
    knownLoss !== undefined &&
    (knownLoss.before === undefined || isOlder(natsVersion, knownLoss.before))
  );
}

const regressions: MetricName = "penstock_stream_regressions_total";

/**
 * The gateway has counted a loss, or is unready, as it is for a minute after a loss. Must be called
 * before the cluster is dismantled.
 */
async function hasToldOfLoss({ adminUrl }: GatewayProcess): Promise<boolean> {
  const { status } = await fetch(`${adminUrl}/readyz`);
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  return status === 503 || new RegExp(`^${regressions}\\{.*\\} [1-9]`, "m").test(metrics);
}

/**
 * The ledger may have read an incomplete replica. If the other replicas have the data, the cluster
 * has not lost it.
 */
async function secondReading(store: Store, events: Events): Promise<string> {
  const reader = createStreamReader(store, events, [ruledProject]);
  await reader.read();
  return `lost: of these, ${reader.settlement().lost} are not found in a second reading either`;
}

interface ContextParts {
  readonly scenario: Scenario;
  readonly site: Site;
  readonly options: RunOptions;
  readonly driver: Driver;
  readonly events: Events;
  readonly notes: string[];
}

function contextOf({
  scenario,
  site,
  options,
  driver,
  events,
  notes,
}: ContextParts): ScenarioContext {
  return {
    store: site.store,
    gateway: site.gateway,
    faultMs: options.faultMs ?? scenario.faultMs[options.form],
    recoveryMsMax: options.recoveryMsMax,
    seed: options.seed,
    natsVersion: options.natsVersion,
    acknowledged: (more) => driver.acknowledged(more),
    untilRefused: (label) => driver.untilRefused(label),
    hold: async (ms) => void (await delay(ms)),
    note: (text) => void notes.push(text),
    fillStreams: () => fillStreams(site.store),
    emptyStreams: () => emptyStreams(site.store),
    givenUpBody(count) {
      const kind = events.of["given-up"];
      const first = kind.take(count, 0);
      kind.ledger.note(first, count, "unknown");
      return batchBody(
        kind.projectOf(first),
        eventTexts(kind, first, count, { paddingBytes: 100 }),
      );
    },
    ...(site.clock === undefined ? {} : { clock: site.clock }),
  };
}

export async function addProjects(
  store: Store,
  gateway: GatewayProcess,
  events: Events,
): Promise<void> {
  const connection = await connectReader(store);
  try {
    for (const id of events.projects) {
      await addProject(connection, {
        prefix: subjectPrefix,
        id,
        key: keyOf(id),
        replicas: store.replicas,
      });
    }
  } finally {
    await connection.close();
  }
  for (const id of events.projects) await known(gateway, id);
}

export function brokenPromises(found: Settlement): string[] {
  const rows: [number, string][] = [
    [found.lost, "acknowledged and not stored"],
    [found.storedThoughRefused, "refused with a 4xx and stored"],
    [
      found.storedThoughRefusedForNow,
      "single events refused with a 503 that says they are not stored, and stored",
    ],
    [found.duplicatedWithoutCause, "stored more often than their clients' sendings account for"],
    [
      found.duplicatedOwnFrames,
      "of large requests stored twice, though a retry has the same message ids",
    ],
    [found.outOfOrder, "historical events out of order"],
  ];
  return [
    ...rows.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`),
    ...found.damaged,
  ];
}

interface Recovery {
  readonly recoveryMs: number | undefined;
  readonly nothingRefused: boolean;
}

function lateRecovery(
  { mustRecover }: Scenario,
  { recoveryMs, nothingRefused }: Recovery,
  { recoveryMsMax }: RunOptions,
): string[] {
  if (recoveryMs === undefined)
    return [`no steady 200 answers within ${recoveryWatchMs} ms of the cause's end`];
  if (!mustRecover || nothingRefused || recoveryMs <= recoveryMsMax) return [];
  return [
    `200 answers came back after ${Math.round(recoveryMs)} ms, not within ${recoveryMsMax} ms`,
  ];
}
