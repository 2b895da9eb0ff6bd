import { randomFillSync, randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { expect } from "vitest";
import type { Exchange } from "../../../src/gateway/http/port.ts";
import { createIntake } from "../../../src/gateway/intake/intake.ts";
import type { ProjectMeter } from "../../../src/gateway/projects/project.ts";
import type { FrameOutcome, FrameWaiter, Publisher } from "../../../src/gateway/publish/port.ts";
import type { ProjectShares } from "../../../src/gateway/streams/project-shares.ts";
import type { Problem } from "../../../src/platform/base/errors.ts";
import type { FrameSink } from "../../../src/records/frame-sink.ts";
import { createNativeScanner } from "../../../src/records/native.ts";
import { JsonRecordWriter } from "../../../src/records/record.ts";
import { UuidSource } from "../../../src/records/uuid.ts";
import { bareExchange } from "./bare-exchange.ts";
import { FakeFrame } from "./fake-frame.ts";

export interface Submitted {
  readonly messageId: string;
  readonly uuids: string[];
  settle(outcome: FrameOutcome): void;
}

interface Given {
  readonly results?: Record<string, { result: string; details?: string }>;
  readonly hasRetry?: boolean;
  readonly problem?: Problem;
}

export interface SentHow {
  readonly between?: string;
  readonly clientAddress?: string;
  readonly requestTimestamp?: string;
}

export function intakeOnFrames(
  options: { shares?: ProjectShares; monotonicMs?: () => number; meter?: ProjectMeter } = {},
) {
  const { monotonicMs = () => performance.now(), meter, ...more } = options;
  const frames: Submitted[] = [];
  const counted: Record<string, number> = {};
  const count = (what: string, by: number) => {
    counted[what] = (counted[what] ?? 0) + by;
  };
  const given = { stored: 0, dropped: 0, unknown: 0, givenBack: 0 };
  const noted: ProjectMeter = {
    take: () => ({
      giveBack: () => void given.givenBack++,
      countDropped(events: number) {
        given.dropped += events;
      },
      countFiltered() {},
    }),
    refuseUnread: () => undefined,
    countStored(events: number) {
      given.stored += events;
    },
    countUnknown(events: number) {
      given.unknown += events;
    },
  };
  const project = { id: "a", name: "a", keys: ["key_a"], enabled: true, meter: meter ?? noted };
  const publisher: Publisher = {
    frameBytesMax: 524_288,
    recordBytesMaxOf: () => 4_194_304,
    streamOf: () => "LIVE",
    refusalOf: () => undefined,
    refusal: () => undefined,
    discard: () => {},
    join: () => expect.unreachable("no shared frames"),
    sharedFrame: () => expect.unreachable("no shared frames"),
    ownFrame: (_lane, _project, bytes) => new FakeFrame(bytes),
    submit(sink: FrameSink, messageId: string, waiter: FrameWaiter) {
      const lines = sink.buffer.toString("utf8", 0, sink.length).trimEnd().split("\n");
      const uuids = lines.map((line) => (JSON.parse(line) as { uuid: string }).uuid);
      const code = (outcome: FrameOutcome) =>
        outcome === "refused" ? ("store_full" as const) : undefined;
      const settle = (outcome: FrameOutcome) =>
        waiter.frameSettled(outcome, code(outcome), sink.events, sink.length, sink.length);
      frames.push({ messageId, uuids, settle });
    },
  };
  const intake = createIntake({
    createScanner: createNativeScanner,
    projects: {
      hasNone: false,
      byKey: (key) => (key === "key_a" ? project : undefined),
      refusalOf: () => undefined,
    },
    publisher,
    records: new JsonRecordWriter({
      uuids: new UuidSource({ randomFill: (bytes) => randomFillSync(bytes) }),
    }),
    metrics: {
      events: (_lane, reason, events) => count(reason, events),
      warnings: count,
      slowPathItems() {},
      distinctIdsCut() {},
    },
    ...more,
    monotonicMs,
    nextTurn: setImmediate,
  });

  function send(batch: readonly unknown[], requestId: string = randomUUID(), how: SentHow = {}) {
    const answer = Promise.withResolvers<Given>();
    const { between = ",", clientAddress = "", requestTimestamp = "" } = how;
    const v1 = { apiKey: "key_a", requestId, attempt: "", requestTimestamp, sdkInfo: "sdk/1" };
    const exchange: Exchange = {
      ...bareExchange,
      receivedAtMs: Date.now(),
      clientAddress,
      deadlineMs: monotonicMs() + 30_000,
      v1: {
        ...v1,
        answerResults: (text, hasRetry) =>
          answer.resolve({ ...(JSON.parse(text.toString()) as Pick<Given, "results">), hasRetry }),
      },
      answerStored: () => answer.reject(new Error("answered as the older protocol is")),
      answerProblem: (problem) => answer.resolve({ problem }),
    };
    const items = batch.map((item) => JSON.stringify(item)).join(between);
    const body = Buffer.from(`{"created_at":"2026-01-01T00:00:00Z","batch":[${items}]}`);
    const work = intake(exchange, { memory: "borrowed", bytes: body }) ?? Promise.resolve();
    return { answer: answer.promise, work, bodyBytes: body.length };
  }

  return { frames, given, counted, send };
}

export function event(textBytes = 0) {
  const properties = { text: "x".repeat(textBytes) };
  return {
    event: "e",
    uuid: randomUUID(),
    distinct_id: "u",
    timestamp: "2026-01-01T00:00:00Z",
    properties,
  };
}

export const dropped = () => ({ ...event(), event: "" });

export async function settleAll(
  frames: Submitted[],
  work: Promise<void>,
  outcomeOf: (at: number) => FrameOutcome,
  settledBefore = 0,
) {
  let isDone = false;
  void work.then(() => {
    isDone = true;
  });
  let settled = settledBefore;
  for (let idle = 0; !isDone || settled < frames.length; ) {
    const before = frames.length;
    await setImmediate();
    idle = frames.length === before ? idle + 1 : 0;
    if (idle < 20 && !isDone) continue;
    const from = settled;
    settled = frames.length;
    for (let at = settled - 1; at >= from; at--) frames[at]?.settle(outcomeOf(at));
    idle = 0;
  }
}
