// Closed-loop load by autocannon, in its own process. Each connection sends its next request after
// the answer to the last request. This finds the highest rate, but its latencies are not
// meaningful.

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import autocannon from "autocannon";
import type { LoadJob, LoadResult } from "./job.ts";

const timeoutSeconds = 120;
const sampleMs = 100;
const coresForWorkers = 6;
const connectionsForWorkers = 32;

const job = JSON.parse(process.argv[2] ?? "") as LoadJob;
const bytes = readFileSync(job.bodyFile);
const bodies = job.lines ? bytes.toString("utf8").trimEnd().split("\n") : [bytes];
let clients = 0;

/**
 * Connections start at different bodies, so that all bodies are in flight at the same time.
 * Preparing all bodies for all connections takes minutes, so each connection may get a part of
 * them.
 */
function rotate(client: autocannon.Client): void {
  const number = clients++;
  const part = Math.ceil(bodies.length / job.connections);
  const from = part > 1 ? (number * part) % bodies.length : (number * 7_919) % bodies.length;
  const own = part > 1 ? bodies.slice(from, from + part) : inTurnFrom(from);
  client.setRequests(own.map((body) => ({ body })));
}

function inTurnFrom(from: number): readonly (string | Buffer)[] {
  return [...bodies.slice(from), ...bodies.slice(0, from)];
}

const useWorkers =
  !job.lines &&
  job.connections >= connectionsForWorkers &&
  availableParallelism() >= coresForWorkers;

const result = await autocannon({
  url: `${job.url}${job.path}`,
  method: job.method,
  headers: {
    "content-type": "application/json",
    ...(job.contentEncoding === undefined ? {} : { "content-encoding": job.contentEncoding }),
  },
  body: bodies[0],
  connections: job.connections,
  duration: job.seconds,
  timeout: timeoutSeconds,
  sampleInt: sampleMs,
  ...(job.lines ? { setupClient: rotate } : {}),
  ...(useWorkers ? { workers: 2 } : {}),
} as autocannon.Options);

const ok = result.statusCodeStats?.["200"]?.count ?? 0;
const requests = result["1xx"] + result["2xx"] + result["3xx"] + result["4xx"] + result["5xx"];
const answer: LoadResult = {
  requests,
  refused: requests - ok,
  failed: result.errors + result.timeouts,
  seconds: (result.finish.getTime() - result.start.getTime()) / 1_000,
  latencyMs: undefined,
};
process.send?.(answer);
