// Open-loop load: requests are due at a fixed rate, even if earlier requests have not been
// answered. Latency is measured from the time at which a request was due, so a stalled server
// increases it (no coordinated omission).

import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { createHistogram } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { headOf, openTo, responseEnd, statusOf } from "./http.ts";
import type { LoadJob, LoadResult } from "./job.ts";

interface Connection {
  readonly socket: Socket;
  dueNs: bigint;
  received: Buffer | undefined;
  isAnswered: boolean;
}

const nsPerMs = 1_000_000n;
const nsPerSecond = 1e9;
const lastAnswersMsMax = 30_000;

const job = JSON.parse(process.argv[2] ?? "") as LoadJob;
const rate = job.rate ?? 0;
const bytes = readFileSync(job.bodyFile);
const bodies = job.lines ? bytes.toString("utf8").trimEnd().split("\n").map(Buffer.from) : [bytes];
const requests = bodies.map((body) => Buffer.concat([headOf(job, body.length), body]));
const latency = createHistogram();
const idle: Connection[] = [];
const dueTimes: bigint[] = [];
let dueTaken = 0;
let sent = 0;
let answered = 0;
let refused = 0;
let failed = 0;
let lost = 0;
let last200Ns: bigint | undefined;
let longestGapNs = 0n;
let settledNs = 0n;

function send(connection: Connection, dueNs: bigint): void {
  connection.dueNs = dueNs;
  connection.socket.write(requests[sent++ % requests.length]!);
}

function answer(connection: Connection, chunk: Buffer): void {
  const received =
    connection.received === undefined ? chunk : Buffer.concat([connection.received, chunk]);
  if (responseEnd(received) === undefined) {
    connection.received = received;
    return;
  }
  connection.received = undefined;
  const now = process.hrtime.bigint();
  if (connection.dueNs >= settledNs)
    latency.record(now > connection.dueNs ? now - connection.dueNs : 1n);
  connection.isAnswered = true;
  answered++;
  if (statusOf(received) !== 200) refused++;
  else noteGap(now);
  if (job.opensConnections) {
    connection.socket.destroy();
    return;
  }
  const due = dueTimes[dueTaken];
  if (due === undefined) {
    idle.push(connection);
    return;
  }
  dueTaken++;
  send(connection, due);
}

function noteGap(nowNs: bigint): void {
  const gapNs = nowNs - (last200Ns ?? nowNs);
  if (gapNs > longestGapNs) longestGapNs = gapNs;
  last200Ns = nowNs;
}

async function open(): Promise<void> {
  const { socket, openEvent } = openTo(job.url);
  const connection: Connection = { socket, dueNs: 0n, received: undefined, isAnswered: false };
  await new Promise<void>((resolve, reject) => {
    socket.once(openEvent, resolve);
    socket.once("error", reject);
  });
  socket.on("data", (chunk: Buffer) => answer(connection, chunk));
  socket.on("error", () => {
    failed++;
  });
  idle.push(connection);
}

function sendOnNew(dueNs: bigint): void {
  const { socket } = openTo(job.url);
  const connection: Connection = { socket, dueNs, received: undefined, isAnswered: false };
  socket.on("data", (chunk: Buffer) => answer(connection, chunk));
  socket.on("error", () => {});
  socket.on("close", () => {
    if (!connection.isAnswered) lost++;
  });
  send(connection, dueNs);
}

async function pace(): Promise<bigint> {
  const beginNs = process.hrtime.bigint();
  settledNs = beginNs + BigInt(Math.round(job.settleSeconds * nsPerSecond));
  const total = Math.round(rate * job.seconds);
  let due = 0;
  while (due < total) {
    const elapsedMs = Number((process.hrtime.bigint() - beginNs) / nsPerMs);
    for (; due < total; due++) {
      const dueMs = Math.floor((due * 1_000) / rate);
      if (dueMs > elapsedMs) break;
      const dueNs = beginNs + BigInt(dueMs) * nsPerMs;
      if (job.opensConnections) {
        sendOnNew(dueNs);
        continue;
      }
      // The server closes a connection that is idle for ten seconds, so connections are used in
      // turn.
      const connection = idle.shift();
      if (connection === undefined) dueTimes.push(dueNs);
      else send(connection, dueNs);
    }
    await delay(1);
  }
  const deadline = performance.now() + lastAnswersMsMax;
  while (answered + lost < total && performance.now() < deadline) await delay(1);
  failed += total - answered;
  return process.hrtime.bigint() - beginNs;
}

for (let index = 0; index < job.connections && !job.opensConnections; index++) await open();
const tookNs = await pace();
const ms = (percentile: number) => latency.percentile(percentile) / Number(nsPerMs);
const result: LoadResult = {
  requests: answered,
  refused,
  failed,
  seconds: Number(tookNs) / nsPerSecond,
  latencyMs: {
    p50: ms(50),
    p90: ms(90),
    p99: ms(99),
    p999: ms(99.9),
    max: latency.max / Number(nsPerMs),
  },
  longestGapMs: Number(longestGapNs) / Number(nsPerMs),
};
process.send?.(result, () => process.exit(0));
