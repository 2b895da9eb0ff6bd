// The report as text: a progress line during the run, and the full report at the end.

import type { StoredTally } from "./ledger.ts";
import { type Percentiles, percentText, type Result } from "./result.ts";
import type { Load } from "./threads.ts";

const nameWidth = 26;
const numberWidth = 12;

export function progressLine({ counts, answers, fromDue, elapsedMs }: Load): string {
  const known = fromDue.totalCount > 0;
  const p50 = known ? msText(fromDue.getValueAtPercentile(50) / 1_000) : "-";
  const p99 = known ? msText(fromDue.getValueAtPercentile(99) / 1_000) : "-";
  const others = [...answers]
    .filter(([label]) => label !== "200")
    .map(([label, count]) => `  ${label}: ${whole(count)}`);
  const notSent = counts.notSent === 0 ? "" : `  not sent: ${whole(counts.notSent)}`;
  return `${String(Math.round(elapsedMs / 1_000)).padStart(4)} s  sent ${whole(counts.sent)}  200: ${whole(counts.acknowledged)}${others.join("")}${notSent}  p50 ${p50} ms  p99 ${p99} ms  backlog ${whole(counts.backlog)}`;
}

export function reportText(result: Result): string {
  const { requests, answers, run, stored } = result;
  const requestRate = run.rate / run.batch;
  const sections = [
    [
      `${run.url}: ${whole(run.rate)} events/s for ${run.durationMs / 1_000} s${run.warmUpMs === 0 ? "" : ` after ${run.warmUpMs / 1_000} s to warm up`}, ${whole(run.batch)} a request (${whole(requestRate)} requests/s), ${whole(run.eventBytes)} bytes an event${run.gzip ? ", gzip" : ""}, ${run.connections} connections`,
    ],
    [
      "Requests",
      row("due", whole(requests.due)),
      row(
        "sent",
        whole(requests.sent),
        requests.late === 0
          ? ""
          : `${whole(requests.late)} of them late: no connection was free when they were due`,
      ),
      row(
        "not sent",
        whole(requests.notSent),
        requests.notSent === 0 ? "" : "the backlog was full, or the run ended first",
      ),
      row("unanswered", whole(requests.unanswered)),
      ...(requests.retries === 0 ? [] : [row("sent again", whole(requests.retries))]),
    ],
    ["Answers", ...Object.entries(answers).map(([label, count]) => row(label, whole(count)))],
    [
      `Latency of 200 answers, ms${" ".repeat(nameWidth - 26)}${columns(["p50", "p75", "p90", "p99", "p99.9", "max"])}`,
      row("from when it was due", ...percentileCells(result.latencyFromDueMs)),
      row("from when it was sent", ...percentileCells(result.latencyFromSentMs)),
    ],
    [
      "Throughput",
      row(
        "events/s acknowledged",
        whole(result.eventsPerSecond),
        `of ${whole(run.rate)} asked for`,
      ),
      row("requests/s", whole(result.requestsPerSecond)),
      row(
        "body bytes sent",
        whole(result.bodyBytes),
        run.gzip ? `of ${whole(result.plainBytes)} before gzip` : "",
      ),
    ],
    storedSection(stored),
    result.remarks.map((remark) => `Note: ${remark}`),
    [
      ...result.failures.map((failure) => `FAILED: ${failure}`),
      ...(result.ok
        ? [
            `OK: ${percentText(requests.acknowledgedRatio)} of the due requests were answered 200${stored === null ? "" : ", and every acknowledged event is stored once"}`,
          ]
        : []),
    ],
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

function storedSection(stored: StoredTally | null): string[] {
  if (stored === null) return ["Stored: not checked (--nats-url or --data-dir says where)"];
  const some = (name: string, count: number): string[] =>
    count === 0 ? [] : [row(name, whole(count))];
  return [
    "Events in the streams",
    row("acknowledged", whole(stored.acknowledged)),
    row("stored once", whole(stored.storedOnce)),
    row("stored more than once", whole(stored.storedMoreThanOnce)),
    row("lost", whole(stored.lost)),
    ...some("stored again by a retry", stored.storedAgainAfterUnknown),
    ...some("stored, outcome unknown", stored.storedThoughUnknown),
    ...some("stored though refused", stored.storedThoughRefused),
  ];
}

function row(name: string, ...cells: string[]): string {
  const [first = "", ...others] = cells;
  const isTable = others.length > 1;
  const start = `  ${name.padEnd(nameWidth)}`;
  return isTable
    ? `${start}${columns(cells)}`
    : `${start}${first.padStart(numberWidth)}  ${others.join("")}`.trimEnd();
}

function columns(cells: readonly string[]): string {
  return cells.map((cell) => cell.padStart(10)).join("");
}

function percentileCells(percentiles: Percentiles | null): string[] {
  if (percentiles === null) return ["-", "-", "-", "-", "-", "-"];
  const { p50, p75, p90, p99, p999, max } = percentiles;
  return [p50, p75, p90, p99, p999, max].map(msText);
}

function msText(ms: number): string {
  return ms.toFixed(ms < 100 ? 2 : 0);
}

function whole(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}
