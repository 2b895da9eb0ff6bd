import { FrameLines } from "../../src/readers/effects/lines/frame-lines.ts";
import type { StoredLine } from "../../src/readers/effects/lines/line.ts";
import type { EventEffect, Rejection } from "../../src/readers/effects/types.ts";
import type { StoredFrame } from "../../src/readers/stream/frame.ts";

export const eventUuid = "0190c8b2-7f3a-7c11-9d2e-3f4a5b6c7d8e";
export const receivedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5, 700);
export const timeMs = receivedAtMs - 22;

export function recordOf(fields: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    uuid: eventUuid,
    project_id: "p",
    event: "e",
    distinct_id: "u",
    timestamp: new Date(timeMs).toISOString(),
    received_at: new Date(receivedAtMs).toISOString(),
    ip: "127.0.0.1",
    kind: "custom",
    person_profile: true,
    historical: false,
    properties: {},
    ...fields,
  });
}

export function frameOf(text: string | Uint8Array, wanted: Partial<StoredFrame> = {}): StoredFrame {
  return {
    stream: "PENSTOCK_LIVE_0",
    lane: "live",
    partition: 0,
    epoch: 1,
    sequence: 1,
    projectId: "p",
    messageId: "m",
    storedAtMs: receivedAtMs + 10,
    data: typeof text === "string" ? Buffer.from(text) : text,
    ...wanted,
  };
}

interface ReadLine extends Omit<StoredLine, "frame" | "line" | "effect" | "stamp" | "place"> {
  readonly effect: EventEffect;
}

interface ReadFrame {
  readonly lines: ReadonlyMap<number, ReadLine>;
  readonly unreadable: ReadonlyMap<number, Rejection & { readonly projectId: string }>;
}

export function snapshot(line: StoredLine): ReadLine {
  return {
    projectId: line.projectId,
    uuidHashHigh: line.uuidHashHigh,
    uuidHashLow: line.uuidHashLow,
    receivedAtMs: line.receivedAtMs,
    timeMs: line.timeMs,
    usageClass: line.usageClass,
    distinctId: line.distinctId,
    idHashHigh: line.idHashHigh,
    idHashLow: line.idHashLow,
    hasPerson: line.hasPerson,
    isPlain: line.isPlain,
    effect: line.effect(),
  };
}

let shared: FrameLines | undefined;

export function readFrame(frame: StoredFrame, reader?: FrameLines): ReadFrame {
  shared ??= new FrameLines();
  const lines = new Map<number, ReadLine>();
  const unreadable = new Map<number, Rejection & { projectId: string }>();
  const reading = (reader ?? shared).read(frame, {
    line: (line) => lines.set(line.line, snapshot(line)),
    unreadable: (_, line, projectId, rejection) =>
      unreadable.set(line, { ...rejection, projectId }),
  });
  while (reading.next().done !== true);
  return { lines, unreadable };
}

export function readLine(text: string, wanted: Partial<StoredFrame> = {}): ReadLine {
  const { lines, unreadable } = readFrame(frameOf(text, wanted));
  const line = lines.get(0);
  if (line === undefined) throw new Error(`not read: ${JSON.stringify([...unreadable])}`);
  return line;
}

export function effectOf(wanted: Partial<EventEffect> = {}): EventEffect {
  return {
    projectId: "p",
    stamp: { timeMs, rank: "l001000000000000010000" },
    place: { lane: "live", partition: 0, epoch: 1, sequence: 1, line: 0 },
    eventUuid,
    receivedAtMs,
    distinctId: "u",
    eventDistinctId: "u",
    person: undefined,
    link: undefined,
    group: undefined,
    memberOf: [],
    rejections: [],
    ...wanted,
  };
}
