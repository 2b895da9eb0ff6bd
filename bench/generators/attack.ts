// Sends one body repeatedly on many connections, with any answers, while other clients are
// measured. Reopens closed connections.

import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { clientHello } from "../../test/kit/client-hello.ts";
import { headOf, responseEnd, statusOf } from "./http.ts";
import { endWith, type LoadJob } from "./job.ts";

const pauseMs = 100;
const openedAtOnce = 50;
/**
 * The interval between requests of a held connection, which the server closes after ten seconds.
 */
const heldMs = 7_000;

const job = JSON.parse(process.argv[2] ?? "") as LoadJob;
const body = readFileSync(job.bodyFile);
const request = await requestOf(job);
const { hostname, port } = new URL(job.url);
const beganMs = performance.now();
const endMs = beganMs + job.seconds * 1_000;
let sent = 0;
let answered = 0;
let refused = 0;

async function requestOf({ delivery }: LoadJob): Promise<Buffer> {
  switch (delivery) {
    case "client-hello":
      return await clientHello();
    case "whole":
    case "held":
      return Buffer.concat([headOf(job, body.length), body]);
    case "withheld":
      return Buffer.concat([headOf(job, body.length), body.subarray(0, -1)]);
    case "one-byte-chunks":
      return Buffer.concat([headOf(job, undefined), Buffer.from(inChunks(body), "latin1")]);
  }
}

function inChunks(bytes: Buffer): string {
  return `${bytes.toString("latin1").replace(/./gs, "1\r\n$&\r\n")}0\r\n\r\n`;
}

function sendOn(localAddress: string | undefined): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    const timer = setTimeout(() => socket.destroy(), Math.max(0, endMs - performance.now()));
    let received: Buffer = Buffer.alloc(0);
    let next: NodeJS.Timeout | undefined;
    const send = (): void => {
      sent++;
      socket.write(request);
    };
    socket.once("connect", send);
    socket.on("data", (chunk: Buffer) => {
      if (job.delivery === "client-hello") {
        answered++;
        refused++;
        socket.destroy();
        return;
      }
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      if (responseEnd(received) === undefined) return;
      answered++;
      if (statusOf(received) !== 200) refused++;
      received = Buffer.alloc(0);
      if (job.delivery === "held") next = setTimeout(send, heldMs);
      else send();
    });
    socket.on("error", () => {});
    socket.once("close", () => {
      clearTimeout(timer);
      clearTimeout(next);
      resolve();
    });
  });
}

async function run(index: number): Promise<void> {
  const localAddress = job.from[index % job.from.length];
  await delay(Math.floor(index / openedAtOnce) * 10);
  while (performance.now() < endMs) {
    await sendOn(localAddress);
    if (performance.now() < endMs) await delay(pauseMs);
  }
}

await Promise.all(Array.from({ length: job.connections }, (_, index) => run(index)));
endWith({ sent, answered, refused, beganMs });
