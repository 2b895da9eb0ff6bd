import type { Msg } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { Departures } from "../../../src/gateway/publish/departures.ts";
import { Frame, FrameQueue } from "../../../src/gateway/publish/frame.ts";
import {
  frameMsMax,
  InFlight,
  type InFlightOptions,
} from "../../../src/gateway/publish/in-flight.ts";
import type { NatsLink } from "../../../src/platform/nats/link.ts";
import { StreamStates } from "../../../src/platform/nats/readiness.ts";

const ackTimeoutMs = 2_000;
const later = 1_000_000;

function startInFlight() {
  const outcomes: unknown[] = [];
  /** The message id, the outcome and the code of each outcome. */
  const reports: unknown[] = [];
  const replies: string[] = [];
  const sent: string[] = [];
  let now = 0;
  let changed: (connected: boolean) => void = () => {};
  let onReply: (error: Error | null, message: Msg) => void = () => {};
  const link = {
    connection: {
      isClosed: () => false,
      subscribe(_subject: string, { callback }: { callback: typeof onReply }) {
        onReply = callback;
        return { unsubscribe() {} };
      },
    },
    connected: true,
    messageBytesMax: 1_048_576,
    send(message: Buffer): void {
      const text = message.toString("latin1");
      replies.push(text.split(" ")[2]!);
      sent.push(text.split("\n").at(-3)!);
    },
    onChange: (listener: typeof changed) => {
      changed = listener;
    },
  } as unknown as NatsLink;
  const inFlight = new InFlight({
    link,
    processId: "process000001",
    ackTimeoutMs,
    monotonicMs: () => now,
    metrics: {
      frameSent() {},
      frameAcked() {},
      ackFailed() {},
      frameRetried() {},
    } as unknown as InFlightOptions["metrics"],
    log: { info() {}, warn() {}, error() {} },
    settled({ messageId }, outcome, code) {
      outcomes.push(outcome);
      reports.push([messageId, outcome, code]);
    },
    expired(frame, _monotonicMs, { outcome, code }) {
      frame.deadlineMs = Number.POSITIVE_INFINITY;
      outcomes.push(`reported ${outcome}`);
      reports.push([frame.messageId, outcome, code]);
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
  return {
    inFlight,
    replies,
    stream,
    outcomes,
    reports,
    sent,
    send(withinMs: number): string {
      sendFrame("id", withinMs);
      return replies.at(-1)!;
    },
    sendFrame,
    pass(ms: number): void {
      now += ms;
      inFlight.tick(now);
    },
    stand(ms: number): void {
      now += ms;
    },
    reconnect(): void {
      changed(false);
      changed(true);
    },
    reply(subject: string, reply: object): void {
      const text = JSON.stringify(reply);
      onReply(null, {
        subject,
        data: Buffer.from(text),
        json: () => JSON.parse(text),
      } as unknown as Msg);
    },
    closeReplies: () => onReply(new Error("permissions violation"), {} as Msg),
  };

  function sendFrame(name: string, withinMs: number): Frame {
    const frame = new Frame(queue, Buffer.alloc(4_096));
    frame.length = frame.buffer.write(`${name}\n`);
    frame.messageId = name;
    frame.deadlineMs = now + withinMs;
    frame.joins.push(frame.deadlineMs, 1, frame.length);
    inFlight.send(frame, now);
    return frame;
  }
}

// In a cluster, nats-server 2.10 can answer `seq: 0` for 2 minutes. It notes a message id before
// the message is committed, and keeps the id if it loses the leadership.
test.each([
  ["is staged and never committed", 300, { seq: 0, duplicate: true }],
  ["fails in the store", 100, { seq: 0, error: { code: 503, err_code: 10_077 } }],
  ["is answered by another stream", ackTimeoutMs, { stream: "ANOTHER", seq: 1 }],
])("a frame that %s is retried and becomes unknown after 100 s", (_, everyMs, answer) => {
  const { inFlight, stream, outcomes, replies, send, pass, reply } = startInFlight();
  send(ackTimeoutMs);
  let answered = 0;
  const tickMs = 100;
  for (let ms = 0; ms < frameMsMax - tickMs; ms += tickMs) {
    if (answered < replies.length) reply(replies[answered++]!, { stream: stream.name, ...answer });
    pass(tickMs);
  }
  expect(outcomes).toEqual(["reported unknown"]);
  expect(inFlight.count).toBe(1);
  expect(replies.length).toBe(1 + Math.floor((frameMsMax - tickMs) / everyMs));
  pass(tickMs);
  expect(outcomes).toEqual(["reported unknown", "unknown"]);
  expect(inFlight.count).toBe(0);
});

describe("silence of a stream", () => {
  test("does not begin with a frame that was sent shortly before its deadline", () => {
    const { stream, outcomes, send, pass } = startInFlight();
    for (const withinMs of [-1, 1, ackTimeoutMs - 1]) {
      pass(later);
      send(withinMs);
      pass(Math.max(withinMs, 0));
    }
    expect(outcomes.sort()).toEqual([...Array(3).fill("reported unknown"), "unknown", "unknown"]);
    expect(stream.silentMonotonicMs).toBeUndefined();
  });

  test("begins if a frame is unacknowledged for the full timeout", () => {
    const { stream, send, pass } = startInFlight();
    send(ackTimeoutMs);
    pass(ackTimeoutMs);
    expect(stream.silentMonotonicMs).toBe(ackTimeoutMs);
  });

  test("ends with an acknowledgement even if its request has expired", () => {
    const { stream, outcomes, send, pass, reply } = startInFlight();
    const to = send(ackTimeoutMs);
    pass(ackTimeoutMs);
    stream.silence = { code: "unavailable", detail: "it acknowledges nothing" };
    reply(to, { stream: "ANOTHER", seq: 1 });
    reply(to, { stream: stream.name, seq: 0, duplicate: true });
    reply(`${to}x`, { stream: stream.name, seq: 1 });
    expect(stream.silentMonotonicMs).toBeDefined();
    pass(10);
    reply(to, { stream: stream.name, seq: 1 });
    expect(stream.ackedMonotonicMs).toBe(ackTimeoutMs + 10);
    expect(stream.silentMonotonicMs).toBeUndefined();
    expect(stream.silence).toBeUndefined();
    expect(outcomes).toEqual(["reported unknown", "stored"]);
  });

  test("ends with the acknowledgement of a recently expired frame", () => {
    const { stream, send, pass, reply } = startInFlight();
    const first = send(ackTimeoutMs);
    for (let frames = 0; frames < 1_000; frames++) send(ackTimeoutMs);
    const last = send(ackTimeoutMs);
    pass(ackTimeoutMs);
    pass(frameMsMax);
    reply(first, { stream: stream.name, seq: 1 });
    expect(stream.silentMonotonicMs).toBeDefined();
    reply(last, { stream: stream.name, seq: 2 });
    expect(stream.silentMonotonicMs).toBeUndefined();
  });

  test("does not begin at a reconnect with a frame past its deadline", () => {
    const { stream, outcomes, send, stand, pass, reconnect } = startInFlight();
    send(5_000);
    send(8_000);
    stand(7_000);
    reconnect();
    pass(1_000);
    expect(outcomes).toEqual(["reported unknown", "reported unknown"]);
    expect(stream.silentMonotonicMs).toBeUndefined();
  });

  test("does not begin while acknowledgements cannot be received", () => {
    const { stream, outcomes, send, pass, reconnect, closeReplies } = startInFlight();
    closeReplies();
    send(5_000);
    pass(2_000);
    reconnect();
    pass(3_000);
    expect(outcomes).toEqual(["reported unknown"]);
    expect(stream.silentMonotonicMs).toBeUndefined();
  });
});

function twoFrames() {
  const rig = startInFlight();
  const frames = [rig.sendFrame("past", 5_000), rig.sendFrame("waits", 9_000)] as const;
  return { ...rig, frames };
}

test("a frame past its deadline is sent again at a reconnect", () => {
  const { sent, reports, stand, reconnect } = twoFrames();
  // No tick has run since then, as if the event loop was blocked.
  stand(6_000);
  reconnect();
  expect(sent).toEqual(["past", "waits", "past", "waits"]);
  expect(reports).toEqual([["past", "unknown", "timeout"]]);
});

test("a frame gets one outcome after a long pause of the process", () => {
  const { reports, frames, pass } = twoFrames();
  frames[0].refuse(1);
  pass(200_000);
  expect(reports).toEqual([
    ["past", "refused", "unavailable"],
    ["waits", "unknown", "timeout"],
    ["waits", "unknown", "timeout"],
  ]);
  pass(200_000);
  expect(reports).toHaveLength(3);
});
