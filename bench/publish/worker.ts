// Writes lines into JetStream by one method, in a separate process: frames of Penstock's publisher,
// js.publish per event, or the same bytes without acknowledgements.

import { jetstream } from "@nats-io/jetstream";
import { Metrics } from "../../src/gateway/admin/metrics/metrics.ts";
import { Admission } from "../../src/gateway/intake/admission.ts";
import type { Project } from "../../src/gateway/projects/project.ts";
import type { RequestWaiter } from "../../src/gateway/publish/port.ts";
import { GroupPublisher } from "../../src/gateway/publish/publisher.ts";
import { connectNats } from "../../src/platform/nats/link.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";
import { recordOf } from "../baseline/records.ts";
import { event } from "../harness/bodies.ts";
import { projectIdOf } from "../harness/nats.ts";
import type { PublishWay } from "./ways.ts";

export interface PublishAnswer {
  readonly acknowledged: number;
  readonly seconds: number;
  readonly bytes: number;
  readonly cpuSeconds: number;
}

const [wayText, url = "", secondsText] = process.argv.slice(2);
const way = JSON.parse(wayText ?? "") as PublishWay;
const seconds = Number(secondsText);
const microsPerSecond = 1e6;
const frameBytes = 524_288;
const log = { info: () => {}, warn: () => {}, error: () => {} };
const projectId = projectIdOf(0);
const line = Buffer.from(
  recordOf(event(1), { projectId, at: new Date().toISOString(), ip: "127.0.0.1" }),
);
const subject = `penstock.live.0.${projectId}`;
const link = await connectNats({ access: { natsUrl: url }, log });
let acknowledged = 0;
let bytes = 0;
let deadlineMs = 0;

async function frames(): Promise<void> {
  const config = readConfig({}, {});
  if (!config.ok) throw new Error(config.faults.join("; "));
  const admission = new Admission(config.config.inflightBytesMax);
  const monotonicMs = () => performance.now();
  const metrics = new Metrics();
  const publisher = new GroupPublisher({
    link,
    config: config.config,
    monotonicMs,
    processId: "bench-0123456789",
    identify: (record) => record.toString(),
    metrics,
    admission,
    log,
  });
  const project: Project = { id: projectId, name: "", keys: [], enabled: true };
  await new Promise<void>((resolve, reject) => {
    let open = way.waiting;
    const next = (waiter: RequestWaiter): void => {
      const frame = publisher.sharedFrame("live", project, line.length);
      frame.commit(frame.length + line.copy(frame.buffer, frame.length), 1);
      publisher.join(frame, waiter, monotonicMs() + 30_000);
    };
    for (let index = 0; index < way.waiting; index++) {
      const waiter: RequestWaiter = {
        senderAddress: "",
        whenEnded: () => {},
        frameSettled(outcome) {
          if (outcome !== "stored") return reject(new Error(`publish: a frame ended ${outcome}`));
          acknowledged++;
          bytes += line.length;
          if (performance.now() < deadlineMs) return next(waiter);
          if (--open === 0) resolve();
        },
      };
      next(waiter);
    }
  });
  publisher.close();
  metrics.close();
}

async function jsPublish(): Promise<void> {
  const js = jetstream(link.connection, { timeout: 60_000 });
  async function one(): Promise<void> {
    while (performance.now() < deadlineMs) {
      await js.publish(subject, line);
      acknowledged++;
      bytes += line.length;
    }
  }
  await Promise.all(Array.from({ length: way.waiting }, one));
}

/**
 * Publishes to a subject without subscribers, and flushes so that the speed of the socket counts.
 */
async function raw(): Promise<void> {
  const linesPerFrame = Math.floor(frameBytes / line.length);
  const frame = Buffer.concat(Array.from({ length: linesPerFrame }, () => line));
  const framesPerFlush = 16;
  while (performance.now() < deadlineMs) {
    for (let index = 0; index < framesPerFlush; index++)
      link.connection.publish("bench.unsubscribed", frame);
    await link.connection.flush();
    acknowledged += framesPerFlush * linesPerFrame;
    bytes += framesPerFlush * frame.length;
  }
}

const ways = { frames, "js.publish": jsPublish, raw };
const beganMs = performance.now();
deadlineMs = beganMs + seconds * 1_000;
const cpuBefore = process.cpuUsage();
await ways[way.by]();
const cpu = process.cpuUsage(cpuBefore);
const answer: PublishAnswer = {
  acknowledged,
  seconds: (performance.now() - beganMs) / 1_000,
  bytes,
  cpuSeconds: (cpu.user + cpu.system) / microsPerSecond,
};
process.send?.(answer, () => process.exit(0));
