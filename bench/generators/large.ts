// Closed-loop load of large, different bodies. Waits for every answer, so that acknowledged and
// stored events can be compared exactly.

import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { headOf, responseEnd, statusOf } from "./http.ts";
import { endWith, type LoadJob } from "./job.ts";
import { findMark, makeUnique } from "./unique.ts";

const gzippedBodiesDefault = 8;
const gzipLevel = 6;

const job = JSON.parse(process.argv[2] ?? "") as LoadJob;
const template = readFileSync(job.bodyFile);
const markAt = findMark(template);
const gzippedBodies =
  job.contentEncoding === "gzip" ? makeGzipped(job.amount ?? gzippedBodiesDefault) : undefined;
const amount = gzippedBodies?.length ?? job.amount ?? Number.POSITIVE_INFINITY;
let sent = 0;
let answered = 0;
let refused = 0;

function makeGzipped(count: number): Buffer[] {
  return Array.from({ length: count }, () => {
    makeUnique(template, markAt);
    return gzipSync(template, { level: gzipLevel });
  });
}

function nextBody(own: Buffer): Buffer {
  if (gzippedBodies !== undefined) return gzippedBodies[sent % gzippedBodies.length]!;
  makeUnique(own, markAt);
  return own;
}

async function open(): Promise<Socket> {
  const { hostname, port } = new URL(job.url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  return socket;
}

async function post(socket: Socket, deadlineMs: number): Promise<void> {
  const own = Buffer.from(template);
  while (sent < amount && (sent === 0 || performance.now() < deadlineMs)) {
    const body = nextBody(own);
    sent++;
    socket.write(headOf(job, body.length));
    socket.write(body);
    const status = await answerOn(socket);
    answered++;
    if (status !== 200) refused++;
  }
}

function answerOn(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0);
    const fail = () =>
      reject(new Error(`post: the server closed the connection; it said: ${received}`));
    const take = (chunk: Buffer): void => {
      received = Buffer.concat([received, chunk]);
      if (responseEnd(received) === undefined) return;
      socket.removeListener("data", take);
      socket.removeListener("close", fail);
      resolve(statusOf(received));
    };
    socket.on("data", take);
    socket.once("close", fail);
  });
}

const sockets = await Promise.all(Array.from({ length: job.connections }, open));
const beganMs = performance.now();
await Promise.all(sockets.map((socket) => post(socket, beganMs + job.seconds * 1_000)));
endWith({ sent, answered, refused, beganMs });
