// The budgets: the target of each row, the figure of this run, and whether the target was met. A
// row that was not measured is never reported as met.

import { historyNames } from "../effects/histories.ts";
import { variantTitles } from "../harness/variants.ts";
import { ratioScenario } from "../scenarios/fairness.ts";
import { latencyScenario, natsApartScenario } from "../scenarios/latency.ts";
import { ruleSets } from "../scenarios/rules.ts";
import { sinkScenario } from "../scenarios/sinks.ts";
import { manyProjectsScenario } from "../scenarios/throughput.ts";
import { medianAt, places, type Row, type Where } from "./rows.ts";
import { figure, textTable } from "./text-table.ts";

export interface Budget {
  readonly what: string;
  readonly target: number;
  readonly bound: "at least" | "at most";
  readonly unit: string;
  readonly measured: number;
}

const mib = 1_048_576;
const million = 1e6;
const effectsStores = [
  { name: "SQLite", share: 1 },
  { name: "PostgreSQL", share: 0.5 },
] as const;
const newPersonsPerSecond = 40_000;
const sinkEventsPerSecond = { postgres: 50_000, parquet: 200_000 };

export function budgetsOf(rows: readonly Row[]): Budget[] {
  const at = (where: Where, value: string) =>
    medianAt(rows, { group: "throughput", ...where }, value);
  const rate = (scenario: string, variant: string, sync: Row["sync"]) =>
    at({ scenario, variant, sync }, "eventsPerSecond");
  const ratio = (scenario: string, sync: Row["sync"]) =>
    rate(scenario, "penstock", sync) / rate(scenario, "fastify", sync);
  const limit = (scenario: string, value: string) =>
    medianAt(rows, { group: "limits", scenario, variant: "penstock", sync: "always" }, value);
  const scanRate = (variant: string) =>
    medianAt(rows, { group: "scan", scenario: "18 MB batch", variant, sync: "" }, "bytesPerSecond");
  const singles: Where = {
    scenario: "single events, 128 connections",
    variant: "penstock",
    sync: "always",
  };
  const hundreds: Where = { scenario: "batches of 100", variant: "penstock", sync: "always" };
  const smallRequests = "small requests beside large ones";
  const least = (what: string, target: number, measured: number): Budget => ({
    what,
    target,
    measured,
    bound: "at least",
    unit: "×",
  });
  const most = (what: string, target: number, measured: number, unit: string): Budget => ({
    what,
    target,
    measured,
    bound: "at most",
    unit,
  });
  const effects = (history: string, variant: string) =>
    medianAt(rows, { group: "effects", scenario: history, variant, sync: "" }, "eventsPerSecond");
  const latencyAt = (scenario: string) =>
    medianAt(rows, { group: "latency", scenario, variant: "penstock", sync: "always" }, "p99");
  const taken = medianAt(rows, { group: "effects", ...hundreds }, "eventsPerSecond");
  return [
    least(
      "single events, sync always: requests/s against the baseline",
      9,
      ratio(singles.scenario, "always"),
    ),
    least(
      "batches of 100, sync always: events/s against the baseline",
      30,
      ratio("batches of 100", "always"),
    ),
    least(
      "single events, lazy sync: requests/s against the baseline",
      6,
      ratio(singles.scenario, "lazy"),
    ),
    least(
      "single events, lazy sync: requests/s against the ceiling",
      0.55,
      rate(singles.scenario, "penstock", "lazy") / rate(singles.scenario, "ceiling", ""),
    ),
    least(
      "batches of 100, lazy sync: events/s against the baseline",
      15,
      ratio("batches of 100", "lazy"),
    ),
    least(
      "batches of 19 MB, lazy sync: events/s against the baseline",
      20,
      ratio("batches of 19 MB", "lazy"),
    ),
    most(
      "gateway CPU for a million events in batches of 100",
      1.3,
      at(hundreds, "serverCpuSecondsPerMillion"),
      "s",
    ),
    least(
      "scan with full validation, 18 MB batch, against JSON.parse",
      6,
      scanRate("addon") / scanRate("JSON.parse"),
    ),
    most(
      "memory at rest after load",
      160,
      limit("memory at rest after load", "restBytes") / mib,
      "MiB",
    ),
    most(
      "peak memory above rest, 20 MB bodies, 4 at a time",
      3 * 20 * 4,
      limit("large bodies, 4 at a time", "aboveBytes") / mib,
      "MiB",
    ),
    most(
      "event-loop delay p99 while two clients post 19 MB batches",
      20,
      limit(smallRequests, "loopDelayP99Ms"),
      "ms",
    ),
    most(
      "p99 of small requests beside those, against alone",
      3,
      limit(smallRequests, "p99Ratio"),
      "×",
    ),
    most(
      "p99 of a project beside one at 10 × its limit, against alone",
      1.5,
      medianAt(
        rows,
        { group: "fairness", scenario: ratioScenario, variant: "penstock", sync: "always" },
        "p99Ratio",
      ),
      "×",
    ),
    most(
      "p99 of single events at half of the peak rate, sync always",
      5,
      latencyAt(latencyScenario(0.5)),
      "ms",
    ),
    most("the same, nats-server on a core of its own", 2, latencyAt(natsApartScenario), "ms"),
    most(
      "p99 of a project beside the attack that it feels most",
      100,
      worstBesideAttacks(rows),
      "ms",
    ),
    most(
      "fsyncs for a million single events, sync always, 128 connections",
      40_000,
      (at(singles, "messages") / at(singles, "events")) * million,
      "",
    ),
    ...effectsStores.flatMap(({ name, share }) => [
      least(
        `effects of known people, ${name}: events/s against the gateway's batches of 100`,
        share,
        effects(historyNames.known, name) / taken,
      ),
      least(
        `effects with $set in every event, ${name}: against the same`,
        share / 2,
        effects(historyNames.set, name) / taken,
      ),
      {
        ...least(
          `effects where every event is a new person, ${name}`,
          share * newPersonsPerSecond,
          effects(historyNames.newPeople, name),
        ),
        unit: "events/s",
      },
    ]),
    ...(
      [
        ["sink in PostgreSQL", "postgres"],
        ["sink into Parquet files", "parquet"],
      ] as const
    ).map(([name, target]) => {
      const where = { group: "sinks", scenario: sinkScenario, variant: `sink ${target}`, sync: "" };
      const measured = medianAt(rows, where as Where, "eventsPerSecond");
      return { ...least(name, sinkEventsPerSecond[target], measured), unit: "events/s" };
    }),
    ...rulesBudgets(rows),
    ...replicaBudgets(rows),
    ...manyProjectsBudgets(rows),
  ];
}

function manyProjectsBudgets(rows: readonly Row[]): Budget[] {
  return [
    { nodes: "one node", variant: "penstock" },
    { nodes: "three replicas", variant: `${variantTitles.penstock}, 3 replicas` },
  ].flatMap(({ nodes, variant }) =>
    [100, 1_000, 10_000].flatMap((projects): Budget[] => {
      const what = `single events of ${projects.toLocaleString("en")} projects, ${nodes}`;
      const at = (count: number, value: string) =>
        medianAt(
          rows,
          { group: "projects", scenario: manyProjectsScenario(count), variant, sync: "always" },
          value,
        );
      const share = at(projects, "eventsPerSecond") / at(1, "eventsPerSecond");
      return [
        {
          what: `${what}: events/s against one project`,
          bound: "at least",
          target: 0.5,
          unit: "×",
          measured: share,
        },
        {
          what: `${what}: p99`,
          bound: "at most",
          target: 60,
          unit: "ms",
          measured: at(projects, "p99Ms"),
        },
      ];
    }),
  );
}

function rulesBudgets(rows: readonly Row[]): Budget[] {
  return ruleSets.flatMap(({ name, targets = {} }) =>
    Object.entries(targets).map(
      ([scenario, target]): Budget => ({
        what: `gateway CPU with rules against none, ${scenario}: ${name}`,
        target,
        bound: "at most",
        unit: "×",
        measured: medianAt(
          rows,
          { group: "rules", scenario, variant: name, sync: "always" },
          "cpuRatio",
        ),
      }),
    ),
  );
}

function replicaBudgets(rows: readonly Row[]): Budget[] {
  return (["always", "lazy"] as const).flatMap((sync) =>
    [
      { what: "single events", scenario: "single events, 128 connections", target: 4 },
      { what: "batches of 100", scenario: "batches of 100", target: 20 },
    ].map(({ what, scenario, target }): Budget => {
      const rate = (variant: string) =>
        medianAt(rows, { group: "replicas", scenario, variant, sync }, "eventsPerSecond");
      return {
        what: `three replicas, ${what}, sync ${sync}: against the baseline`,
        target,
        bound: "at least",
        unit: "×",
        measured: rate("penstock") / rate("fastify"),
      };
    }),
  );
}

function worstBesideAttacks(rows: readonly Row[]): number {
  const duringAttacks = rows.filter(
    ({ group, values }) => group === "neighbours" && "attackStored" in values,
  );
  const p99 = places(duringAttacks).map((place) => medianAt(duringAttacks, place, "p99"));
  return p99.length === 0 ? Number.NaN : Math.max(...p99);
}

export function isMet({ bound, target, measured }: Budget): boolean | undefined {
  if (!Number.isFinite(measured)) return undefined;
  return bound === "at least" ? measured >= target : measured <= target;
}

export function budgetTable(budgets: readonly Budget[]): string {
  if (budgets.every((budget) => isMet(budget) === undefined)) return "";
  const lines = budgets.map((budget) => {
    const { what, bound, target, unit, measured } = budget;
    const met = isMet(budget);
    return [
      what,
      met === undefined ? "not measured" : met ? "met" : "NOT MET",
      `${bound} ${figure(target)} ${unit}`.trimEnd(),
      `${figure(measured)} ${Number.isFinite(measured) ? unit : ""}`.trimEnd(),
    ];
  });
  return `Budgets\n\n${textTable(["budget", "", "target", "measured"], lines, 2)}`;
}
