import type { MsgHdrs } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { Departures } from "../../../src/gateway/publish/departures.ts";
import { Frame, FrameQueue } from "../../../src/gateway/publish/frame.ts";
import { InFlight, type InFlightOptions } from "../../../src/gateway/publish/in-flight.ts";
import type { NatsLink } from "../../../src/platform/nats/link.ts";
import { StreamStates } from "../../../src/platform/nats/readiness.ts";

function twoFrames() {
  const sent: string[] = [];
  const outcomes: unknown[] = [];
  let now = 0;
  let changed: (connected: boolean) => void = () => {};
  const link = {
    connection: { subscribe: () => ({ unsubscribe() {} }) as unknown as MsgHdrs },
    connected: true,
    messageBytesMax: 1_048_576,
    send: (message: Buffer) => void sent.push(message.toString("latin1").split("\n").at(-3) ?? ""),
    onChange: (listener: typeof changed) => {
      changed = listener;
    },
  } as unknown as NatsLink;
  const inFlight = new InFlight({
    link,
    processId: "process000001",
    ackTimeoutMs: 60_000,
    monotonicMs: () => now,
    metrics: {
      frameSent() {},
      ackFailed() {},
      frameRetried() {},
    } as unknown as InFlightOptions["metrics"],
    log: { info() {}, warn() {}, error() {} },
    settled: (frame, outcome, code) => void outcomes.push([frame.messageId, outcome, code]),
    expired(frame, _monotonicMs, { outcome, code }) {
      frame.deadlineMs = Number.POSITIVE_INFINITY;
      outcomes.push([frame.messageId, outcome, code]);
    },
    storeFull() {},
    flushes: { wake() {}, now() {} },
  });
  const stream = new StreamStates("test", 1).of("live", 0);
  const options = { framesUnackedMax: 64, monotonicMs: () => now };
  const queue = new FrameQueue(stream, new Departures(stream, options), {
    lane: "live",
    subject: "test.live.0.alpha",
    background: false,
  });
  const frames = (
    [
      ["past", 5_000],
      ["waits", 9_000],
    ] as const
  ).map(([name, deadlineMs]) => {
    const frame = new Frame(queue, Buffer.alloc(4_096));
    frame.length = frame.buffer.write(`${name}\n`);
    frame.messageId = name;
    frame.deadlineMs = deadlineMs;
    frame.joins.push(deadlineMs, 1, frame.length);
    inFlight.send(frame, now);
    return frame;
  });
  expect(sent).toEqual(["past", "waits"]);
  const reconnect = (ms: number): void => {
    now = ms;
    changed(false);
    changed(true);
  };
  const tick = (ms: number): void => {
    now = ms;
    inFlight.tick(ms);
  };
  return { sent, outcomes, frames, reconnect, tick };
}

test("a frame past its deadline is sent again at a reconnect", () => {
  const { sent, outcomes, reconnect } = twoFrames();
  // No tick has run since then, as if the event loop was blocked.
  reconnect(6_000);
  expect(sent).toEqual(["past", "waits", "past", "waits"]);
  expect(outcomes).toEqual([["past", "unknown", "timeout"]]);
});

test("a frame gets one outcome after a long pause of the process", () => {
  const { outcomes, frames, tick } = twoFrames();
  frames[0]!.refuse(1);
  tick(200_000);
  expect(outcomes).toEqual([
    ["past", "refused", "unavailable"],
    ["waits", "unknown", "timeout"],
    ["waits", "unknown", "timeout"],
  ]);
  tick(400_000);
  expect(outcomes).toHaveLength(3);
});
