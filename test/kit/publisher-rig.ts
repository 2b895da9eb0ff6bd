// A publisher with a real nats-server. It has its own prefix and streams.

import { setImmediate as turn } from "node:timers/promises";
import { expect } from "vitest";
import { Admission } from "../../src/gateway/intake/admission.ts";
import type { Project } from "../../src/gateway/projects/project.ts";
import { type Frame, frameOf } from "../../src/gateway/publish/frame.ts";
import type {
  AckFailureCause,
  BatchOutcome,
  PublishMetrics,
} from "../../src/gateway/publish/outcomes.ts";
import type { FrameOutcome, FrameWaiter, RequestWaiter } from "../../src/gateway/publish/port.ts";
import { GroupPublisher } from "../../src/gateway/publish/publisher.ts";
import { batchFramesMin } from "../../src/gateway/publish/together.ts";
import type { StreamSettings } from "../../src/gateway/streams/desired.ts";
import { Streams } from "../../src/gateway/streams/ensure.ts";
import { StreamWatch } from "../../src/gateway/streams/watch.ts";
import type { ErrorCode } from "../../src/platform/base/errors.ts";
import type { Lane } from "../../src/platform/base/lane.ts";
import { managerOf } from "../../src/platform/nats/api.ts";
import { connectNats, type NatsLink } from "../../src/platform/nats/link.ts";
import { type FrameScope, streamName } from "../../src/platform/nats/names.ts";
import {
  type RegressionCause,
  type StreamMetrics,
  StreamStates,
} from "../../src/platform/nats/readiness.ts";
import type { FrameSink } from "../../src/records/frame-sink.ts";
import type { TestNatsServer } from "./nats-server.ts";

interface RigOptions {
  settings?: Partial<StreamSettings>;
  ackTimeoutMs?: number;
  framesUnackedMax?: number;
  frameScope?: FrameScope;
  pingIntervalMs?: number;
  /**
   * Interval in ms between two reads of each stream. By default, streams are only read at the
   * start, after a reconnect, and when a test checks.
   */
  watchEveryMs?: number;
  through?: (link: NatsLink) => NatsLink;
  monotonicMs?: () => number;
}

export interface Settled {
  outcome: FrameOutcome;
  code: ErrorCode | undefined;
}

export interface StoredFrame {
  subject: string;
  lines: string[];
  messageId: string;
  header(name: string): string;
}

export interface Rig {
  link: NatsLink;
  streams: {
    ensure(): Promise<void>;
    check(): Promise<string[]>;
    unfit(): number;
    heard(): number;
    states: StreamStates;
  };
  settings: StreamSettings;
  publisher: GroupPublisher;
  admission: { bytes: number };
  heard: {
    framesSent: number;
    framesAcked: number;
    retries: number;
    batches: [outcome: BatchOutcome, frames: number][];
    duplicates: number;
    failures: AckFailureCause[];
    regression: RegressionCause[];
  };
  log: string[];
  /** Adds a line to the shared frame. Resolves when the frame is settled. */
  send(lane: Lane, line: string, more?: { project?: string; withinMs?: number }): Promise<Settled>;
  sendOwn(
    lane: Lane,
    lines: string[],
    more: { messageId: string; project?: string; withinMs?: number },
  ): Promise<Settled>;
  stored(lane: Lane, partition?: number): Promise<StoredFrame[]>;
  close(): Promise<void>;
}

export const mebibyte = 1_048_576;
export const stored: Settled = { outcome: "stored", code: undefined };
const withinMsDefault = 10_000;
let prefixes = 0;
let rigs = 0;

export function liveStream({ settings }: Pick<Rig, "settings">): string {
  return streamName(settings.subjectPrefix, "live", 0);
}

export function projectOf(id: string): Project {
  return { id, name: id, keys: [], enabled: true };
}

export function streamSettings(more: Partial<StreamSettings> = {}): StreamSettings {
  return {
    subjectPrefix: `test${++prefixes}`,
    partitions: 1,
    replicas: 1,
    streamBytesMax: 64 * mebibyte,
    liveAgeMax: 3_600_000,
    historicalAgeMax: 7_200_000,
    frameBytesMax: 524_288,
    atomicBatches: true,
    ...more,
  };
}

export function recordingLog(log: string[]) {
  const write = (fields: object, message: string): void =>
    void log.push(`${message} ${JSON.stringify(fields)}`);
  return { info: write, warn: write, error: write };
}

/** Waits for two turns of the event loop. Frames are sent at the end of the first turn. */
export async function nextTurn(): Promise<void> {
  await turn();
  await turn();
}

function recordingMetrics(heard: Rig["heard"]): PublishMetrics & StreamMetrics {
  return {
    frameSent: () => void heard.framesSent++,
    frameAcked: () => void heard.framesAcked++,
    frameRetried: () => void heard.retries++,
    batchEnded: (outcome, frames) => void heard.batches.push([outcome, frames]),
    ackFailed: (cause) => void heard.failures.push(cause),
    duplicateFrame: () => void heard.duplicates++,
    streamRegressed: (_lane, cause) => void heard.regression.push(cause),
  };
}

function append(sink: FrameSink, line: string): void {
  sink.commit(sink.length + sink.buffer.write(`${line}\n`, sink.length), 1);
}

export async function startRig(server: TestNatsServer, options: RigOptions = {}): Promise<Rig> {
  const lines: string[] = [];
  const log = recordingLog(lines);
  const settings = streamSettings(options.settings);
  const { monotonicMs = () => performance.now() } = options;
  const link = await connectNats({
    access: { natsUrl: server.url, natsToken: server.token },
    log,
    pingIntervalMs: options.pingIntervalMs,
  });
  const streams = new Streams({ link, settings, log });
  await streams.ensure();
  const heard: Rig["heard"] = {
    framesSent: 0,
    framesAcked: 0,
    retries: 0,
    batches: [],
    duplicates: 0,
    failures: [],
    regression: [],
  };
  const metrics = recordingMetrics(heard);
  const states = new StreamStates(settings.subjectPrefix, settings.partitions);
  const watch = new StreamWatch({
    link,
    settings,
    streams: states,
    metrics,
    log,
    monotonicMs,
    everyMs: options.watchEveryMs ?? 3_600_000,
  });
  await watch.askedOnce;
  const admission = new Admission(Number.MAX_SAFE_INTEGER);
  const publisher = new GroupPublisher({
    identify: (record) => record.toString(),
    link: options.through?.(link) ?? link,
    config: {
      ...settings,
      frameScope: options.frameScope ?? "project",
      framesUnackedMax: options.framesUnackedMax ?? 64,
      // The value is fixed, because a measured value would depend on the machine.
      batchesFrom: batchFramesMin,
      ackTimeoutMs: options.ackTimeoutMs ?? 2_000,
    },
    monotonicMs,
    processId: `process${String(++rigs).padStart(6, "0")}`,
    metrics,
    admission,
    log,
    streams: states,
  });

  const departures = new Set<Frame["queue"]["departures"]>();
  const noted = (sink: FrameSink): FrameSink => {
    departures.add(frameOf(sink).queue.departures);
    return sink;
  };

  return {
    link,
    streams: {
      ensure: () => streams.ensure(),
      check: () => watch.check(),
      unfit: () => watch.unfit(),
      heard: () => watch.sizes().length,
      states,
    },
    settings,
    publisher,
    admission,
    heard,
    log: lines,
    send(lane, line, { project = "alpha", withinMs = withinMsDefault } = {}) {
      const bytes = Buffer.byteLength(line) + 1;
      const sink = noted(publisher.sharedFrame(lane, projectOf(project), bytes));
      append(sink, line);
      return new Promise((resolve) => {
        const frameSettled = (outcome: FrameOutcome, code: ErrorCode | undefined): void =>
          resolve({ outcome, code });
        publisher.join(sink, requestWaiter(frameSettled), monotonicMs() + withinMs);
      });
    },
    sendOwn(lane, ownLines, { messageId, project = "alpha", withinMs = withinMsDefault }) {
      const bytes = ownLines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
      const sink = noted(publisher.ownFrame(lane, projectOf(project), bytes));
      for (const line of ownLines) append(sink, line);
      return new Promise((resolve) => {
        const frameSettled = (outcome: FrameOutcome, code: ErrorCode | undefined): void =>
          resolve({ outcome, code });
        publisher.submit(sink, messageId, { frameSettled }, monotonicMs() + withinMs);
      });
    },
    stored: (lane, partition = 0) =>
      readStream(link, streamName(settings.subjectPrefix, lane, partition)),
    async close() {
      await publisher.drain(monotonicMs() + 5_000);
      publisher.close();
      watch.close();
      await link.close();
      expect(admission.bytes).toBe(0);
      expect(publisher.framesUnacked).toBe(0);
      for (const { underWay } of departures)
        expect(underWay).toEqual({ frames: 0, backgroundBytes: 0, alone: 0, batches: 0 });
    },
  };
}

async function readStream(link: NatsLink, name: string): Promise<StoredFrame[]> {
  const jsm = await managerOf(link.connection, { timeoutMs: 5_000 });
  const { state } = await jsm.streams.info(name);
  const frames: StoredFrame[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await jsm.streams.getMessage(name, { seq });
    if (message === null) throw new Error(`read stream ${name}: message ${seq} is not there`);
    const text = new TextDecoder().decode(message.data);
    if (!text.endsWith("\n"))
      throw new Error(`read stream ${name}: message ${seq} does not end in a line break`);
    frames.push({
      subject: message.subject,
      lines: text.slice(0, -1).split("\n"),
      messageId: message.header.get("Nats-Msg-Id"),
      header: (header) => message.header.get(header),
    });
  }
  return frames;
}

export function linesOf(frames: readonly StoredFrame[]): string[] {
  return frames.flatMap((frame) => frame.lines);
}

export function requestWaiter(frameSettled: FrameWaiter["frameSettled"]): RequestWaiter {
  return { senderAddress: "", frameSettled, whenEnded: () => {} };
}
