// A frame and its queue. Both are state only. The publisher decides when a frame is sent, and what
// its outcome is.

import { Buffer } from "node:buffer";
import type { Lane } from "../../platform/base/lane.ts";
import type { MessageSpan } from "../../platform/base/tracing.ts";
import {
  eventsHeader,
  messageIdHeader,
  schemaHeader,
  schemaKnown,
  traceHeader,
} from "../../platform/nats/names.ts";
import type { StreamState } from "../../platform/nats/readiness.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Departure, Departures } from "./departures.ts";
import { isPast } from "./expiry.ts";
import { Fifo } from "./fifo.ts";
import type { FrameWaiter } from "./port.ts";

export class FrameQueue {
  readonly lane: Lane;
  readonly subject: string;
  readonly stream: StreamState;
  readonly departures: Departures<Frame>;
  readonly background: boolean;
  open: Frame | undefined = undefined;
  readonly sealed = new Fifo<Frame>();
  unacked = 0;
  unackedBytes = 0;
  ready = false;
  busy = false;

  constructor(
    stream: StreamState,
    departures: Departures<Frame>,
    options: { lane: Lane; subject: string; background: boolean },
  ) {
    this.stream = stream;
    this.departures = departures;
    this.lane = options.lane;
    this.subject = options.subject;
    this.background = options.background;
  }

  get hasFrame(): boolean {
    return this.sealed.length > 0 || (this.open !== undefined && this.open.waiters.length > 0);
  }

  seal(): void {
    if (this.open !== undefined) this.sealed.push(this.open);
    this.open = undefined;
  }

  takePast(monotonicMs: number): readonly Frame[] {
    const past =
      this.sealed.length === 0 ? noFrames : this.sealed.take((frame) => isPast(frame, monotonicMs));
    const { open } = this;
    if (open === undefined || !isPast(open, monotonicMs)) return past;
    this.open = undefined;
    return [...past, open];
  }
}

const noFrames: readonly Frame[] = [];

// The memory has space for the protocol line and headers before the lines, and for CRLF after them,
// so that the message is contiguous. Otherwise, the NATS client would copy each message, which took
// a third of the gateway's time.
const headRoomBytes = 1_024;
/** Bytes that nats-server stores with a message beyond subject, headers and payload. */
const storedMessageBytes = 34;
const CRLF = Buffer.from("\r\n");
const noMemory = Buffer.alloc(0);

/** Shared and own frames have the same class, so that V8 sees one object shape. */
export class Frame implements FrameSink {
  readonly queue: FrameQueue;
  memory: Buffer;
  buffer: Buffer;
  length = 0;
  events = 0;
  /** Equal at every send; "" until the caller or the publisher sets it. */
  messageId = "";
  /** If true, another request may have stored a message with this id. */
  isNamed = false;
  waiters: FrameWaiter[] = [];
  joins: number[] = [];
  deadlineMs = Number.POSITIVE_INFINITY;
  /** Events with a waiter. Their bytes count against the budget. */
  joinedEvents = 0;
  joinedBytes = 0;
  /** Memory of a submitted own frame beyond its lines. It also counts against the budget. */
  overheadBytes = 0;
  departedBytes = 0;
  /** Identifies the frame in its reply subject. Never reused, so no late reply matches another. */
  token = "";
  sends = 0;
  #refusedSends: Set<number> | undefined = undefined;
  #headBytes = 0;
  #messageOverheadBytes = 0;
  firstSentMonotonicMs = 0;
  /** The highest acknowledged sequence at the first send. The frame's own sequence is higher. */
  sequenceBefore = 0;
  retryMonotonicMs = Number.POSITIVE_INFINITY;
  /** Whether the frame waits for `retryMonotonicMs` after a transient answer or a split batch. */
  pausing = false;
  departure: Departure = "alone";
  /** Shared with retries of the frame's timed-out requests, which wait for the frame's outcome. */
  fate: Fate | undefined = undefined;
  span: MessageSpan | undefined = undefined;

  constructor(queue: FrameQueue, memory: Buffer) {
    this.queue = queue;
    this.memory = memory;
    this.buffer = roomForLines(memory);
  }

  commit(end: number, events: number): void {
    this.length = end;
    this.events += events;
  }

  rollback(): void {
    this.length = this.joinedBytes;
    this.events = this.joinedEvents;
  }

  /** Assigns to `waiter` the lines added since the previous call. Returns their length in bytes. */
  join(waiter: FrameWaiter, deadlineMs: number): number {
    const bytes = this.length - this.joinedBytes;
    this.waiters.push(waiter);
    this.joins.push(deadlineMs, this.events - this.joinedEvents, bytes);
    this.joinedEvents = this.events;
    this.joinedBytes = this.length;
    if (deadlineMs < this.deadlineMs) this.deadlineMs = deadlineMs;
    return bytes;
  }

  moveTo(memory: Buffer): void {
    const buffer = roomForLines(memory);
    this.buffer.copy(buffer, 0, 0, this.length);
    this.memory = memory;
    this.buffer = buffer;
    this.#headBytes = 0;
  }

  /** The old memory may be in the NATS client's buffer. */
  leaveMemory(): void {
    this.moveTo(Buffer.allocUnsafeSlow(memoryBytesFor(this.length)));
  }

  get messageBytesPerByte(): number {
    return 1 + this.#messageOverheadBytes / Math.max(1, this.length);
  }

  refuse(send: number): void {
    this.#refusedSends ??= new Set();
    this.#refusedSends.add(send);
  }

  get isRefused(): boolean {
    return (this.#refusedSends?.size ?? 0) >= this.sends;
  }

  name(messageId: string): void {
    this.messageId = messageId;
    this.isNamed = true;
  }

  /** A line that is written too late finds no space. */
  dropMemory(): void {
    this.memory = noMemory;
    this.buffer = noMemory;
  }

  /**
   * Builds the message (HPUB) in the frame's memory. `reply` is "" if no answer is wanted. Each of
   * the `batchHeaders` ends in CRLF.
   */
  message(reply: string, batchHeaders = ""): Buffer {
    const headers =
      `NATS/1.0\r\n${messageIdHeader}: ${this.messageId}\r\n${eventsHeader}: ${this.events}\r\n` +
      `${schemaHeader}: ${schemaKnown}\r\nContent-Type: application/x-ndjson\r\n` +
      `${traceHeaderOf(this.span)}${batchHeaders}\r\n`;
    const { subject } = this.queue;
    this.#messageOverheadBytes = headers.length + subject.length + storedMessageBytes;
    const to = reply === "" ? subject : `${subject} ${reply}`;
    const head = `HPUB ${to} ${headers.length} ${headers.length + this.length}\r\n${headers}`;
    const start = headRoomBytes - head.length;
    if (start < 0)
      throw new Error(
        `cannot write the head of a frame: ${head.length} bytes before the lines, room for ${headRoomBytes}`,
      );
    // A head of another length begins at another offset, and would corrupt an earlier send.
    if (this.#headBytes > 0 && this.#headBytes !== head.length) this.leaveMemory();
    this.#headBytes = head.length;
    const end = headRoomBytes + this.length;
    this.memory.write(head, start, "latin1");
    CRLF.copy(this.memory, end);
    return this.memory.subarray(start, end + CRLF.length);
  }
}

function traceHeaderOf(span: MessageSpan | undefined): string {
  return span === undefined ? "" : `${traceHeader}: ${span.traceparent}\r\n`;
}

export class Fate {
  frame: Frame | undefined;
  isStored = false;

  constructor(frame: Frame) {
    this.frame = frame;
  }
}

export function frameOf(sink: FrameSink): Frame {
  if (!(sink instanceof Frame))
    throw new Error("cannot use the frame: this publisher did not create it");
  return sink;
}

export function memoryBytesFor(lineBytes: number): number {
  return headRoomBytes + lineBytes + CRLF.length;
}

function roomForLines(memory: Buffer): Buffer {
  return memory.subarray(headRoomBytes, memory.length - CRLF.length);
}
