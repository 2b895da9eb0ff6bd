// The tables of a run: medians, every round, ratios against the baseline and the ceiling of the
// same run, CPU, memory, and whether the server was the limit.

import { variantTitles } from "../harness/variants.ts";
import { firstLimit } from "../scenarios/growth.ts";
import { medianAt, places, type Row, valuesAt, type Where } from "./rows.ts";
import { figure, mebibytes, textTable } from "./text-table.ts";

/**
 * CPU usage of a whole core. The threshold is below 1, because clocks tick in 10 ms, and a run
 * begins and ends idle.
 */
const wholeCore = 0.95;

export function tablesOf(rows: readonly Row[]): string {
  const parts: string[] = [];
  for (const group of new Set(rows.map((row) => row.group))) {
    const own = rows.filter((row) => row.group === group);
    parts.push(`${titles[group] ?? group}\n\n${tableOf(group, own)}`);
  }
  return parts.join("\n\n\n");
}

const titles: Readonly<Record<string, string>> = {
  throughput: "Throughput: events acknowledged a second",
  sizes: "Other sizes: events acknowledged a second",
  projects: "Projects and partitions: events acknowledged a second",
  workers: "Processes on one port: events acknowledged a second",
  latency: "Latency at a fixed rate, ms, from the time a request was due",
  scan: "The scan alone: MB a second",
  rules: "Rules (sync always): CPU of the gateway per event, against no rules in the same round",
  publish: "Publishing alone: events acknowledged a second",
  effects: "Effects: events applied a second, of those that are in the stream",
  sinks: "Sinks: events written a second, of those that are in the stream",
  import: "Import of a file: events stored a second; client is what sends it",
  limits: "Large bodies and small requests during them (sync always)",
  fairness:
    "A project beyond its limit and its neighbour (sync always): ms from the time a request was due",
  neighbours:
    "One project's requests during attacks (sync always): ms from the time a request was due",
  fsyncs: "One PubAck, one fsync?",
  replicas: "Three replicas: events acknowledged a second",
  distance: "Three replicas at a distance (sync always): events acknowledged a second",
  leader: "The stream's leader killed under load",
  peers:
    "Comparison with other programs (an fsync before every answer): events acknowledged a second",
  cost: "What an event costs, three replicas (sync always): CPU seconds for a million",
};

function tableOf(group: string, rows: readonly Row[]): string {
  if (group === "latency") return latencyTable(rows);
  if (group === "scan") return scanTable(rows);
  if (group === "distance") return fieldsTable(rows, distanceFields);
  if (group === "peers") return fieldsTable(rows, peerFields);
  if (group === "cost") return fieldsTable(rows, costFields);
  if (group === "rules") return fieldsTable(rows, rulesFields, ["rules", "cpuRatio"]);
  if (["limits", "fairness", "neighbours", "fsyncs", "leader"].includes(group))
    return valuesTable(rows);
  return throughputTable(rows, group.startsWith("growth"));
}

function titleOf(variant: string): string {
  return Object.hasOwn(variantTitles, variant)
    ? variantTitles[variant as keyof typeof variantTitles]
    : variant;
}

function rounds(values: readonly number[], unit = 1): string {
  return values.map((value) => figure(value / unit)).join(" ");
}

function throughputTable(rows: readonly Row[], isGrowth: boolean): string {
  const compared = isGrowth ? [] : ["× baseline", "of ceiling"];
  const head = [
    "load",
    "sync",
    "server",
    "events/s",
    ...compared,
    "p50 ms",
    "p99 ms",
    "CPU s / million",
    "server cores",
    "nats cores",
    "client cores",
    "other cores",
    "peak MiB",
    isGrowth ? "first limit" : "",
    "rounds",
  ];
  const lines = places(rows).map((place) => {
    const at = (value: string) => medianAt(rows, place, value);
    const rate = at("eventsPerSecond");
    const against = (other: Partial<Where>) =>
      rate / medianAt(rows, { ...place, ...other }, "eventsPerSecond");
    const ratios = [
      place.variant === "fastify" ? "" : figure(against({ variant: "fastify" })),
      place.variant === "ceiling" ? "" : figure(against({ variant: "ceiling", sync: "" })),
    ];
    const coreNames = ["serverCores", "natsCores", "clientCores", "otherCores"];
    const cores = Object.fromEntries(coreNames.map((name) => [name, at(name)]));
    const clientLimited =
      (cores["serverCores"] ?? 0) < wholeCore * (at("workers") || 1) ? "client-limited" : "";
    return [
      place.scenario,
      place.sync,
      titleOf(place.variant),
      figure(rate),
      ...(isGrowth ? [] : ratios),
      ...[at("p50Ms"), at("p99Ms")].map(figure),
      ...[at("serverCpuSecondsPerMillion"), ...Object.values(cores)].map(figure),
      mebibytes(at("peakBytes")),
      isGrowth ? firstLimit(cores) : clientLimited,
      rounds(valuesAt(rows, place, "eventsPerSecond")),
    ];
  });
  return textTable(head, lines, 3);
}

function latencyTable(rows: readonly Row[]): string {
  const fields = ["rate", "achieved", "p50", "p90", "p99", "p999", "max"];
  const lines = places(rows).map((place) => [
    place.scenario,
    place.sync,
    titleOf(place.variant),
    ...fields.map((field) => figure(medianAt(rows, place, field))),
    rounds(valuesAt(rows, place, "p99")),
  ]);
  return textTable(["", "sync", "server", ...fields, "p99 by round"], lines, 3);
}

type Fields = readonly (readonly [head: string, of: (at: (value: string) => number) => number])[];

const costFields: Fields = [
  ["gateway", (at) => at("serverCpuSecondsPerMillion")],
  ["all nodes", (at) => at("natsCpuSecondsPerMillion")],
  ["messages", (at) => (at("messages") / at("events")) * 1e6],
  ["bytes to disk an event", (at) => at("natsBytesPerEvent")],
  ["events/s", (at) => at("eventsPerSecond")],
  ["other cores", (at) => at("otherCores")],
];
const peerFields: Fields = [
  ["events/s", (at) => at("eventsPerSecond")],
  ["CPU s / million", (at) => at("serverCpuSecondsPerMillion")],
  ["MiB after it", (at) => at("restBytes") / 1_048_576],
  ["p99 ms", (at) => at("p99Ms")],
  ["client cores", (at) => at("clientCores")],
  ["other cores", (at) => at("otherCores")],
];
const rulesFields: Fields = [
  ["CPU, ×", (at) => at("cpuRatio")],
  ["events/s, ×", (at) => at("rateRatio")],
  ["CPU s / million", (at) => at("serverCpuSecondsPerMillion")],
  ["events/s", (at) => at("eventsPerSecond")],
  ["server cores", (at) => at("serverCores")],
  ["other cores", (at) => at("otherCores")],
];
const distanceFields: Fields = [["ping, ms", (at) => at("roundTripMs")], ...costFields];

function fieldsTable(
  rows: readonly Row[],
  fields: Fields,
  [variant, ofRounds] = ["server", "eventsPerSecond"],
): string {
  const lines = places(rows).map((place) => [
    place.scenario,
    titleOf(place.variant),
    ...fields.map(([, of]) => figure(of((value) => medianAt(rows, place, value)))),
    rounds(valuesAt(rows, place, ofRounds)),
  ]);
  return textTable(["load", variant, ...fields.map(([head]) => head), "rounds"], lines, 2);
}

function scanTable(rows: readonly Row[]): string {
  const lines = places(rows)
    .toSorted((left, right) => left.scenario.localeCompare(right.scenario))
    .map((place) => {
      const rate = medianAt(rows, place, "bytesPerSecond");
      const parse = medianAt(rows, { ...place, variant: "JSON.parse" }, "bytesPerSecond");
      const all = valuesAt(rows, place, "bytesPerSecond");
      return [
        place.scenario,
        place.variant,
        figure(rate / 1e6),
        figure(rate / parse),
        rounds(all, 1e6),
      ];
    });
  return textTable(["body", "by", "MB/s", "× JSON.parse", "rounds"], lines, 2);
}

function valuesTable(rows: readonly Row[]): string {
  const lines = places(rows).flatMap((place) => {
    const sample = rows.find((row) => row.scenario === place.scenario);
    return Object.keys(sample?.values ?? {}).map((value) => {
      const isBytes = value.endsWith("Bytes");
      const unit = isBytes ? 1_048_576 : 1;
      const all = valuesAt(rows, place, value);
      const name = isBytes ? value.replace(/Bytes$/, ", MiB") : value;
      return [place.scenario, name, figure(medianAt(rows, place, value) / unit), rounds(all, unit)];
    });
  });
  return textTable(["what", "", "median", "rounds"], lines, 2);
}
