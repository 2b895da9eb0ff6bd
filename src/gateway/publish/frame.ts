// A frame and its queue. They contain only state. The publisher decides when a frame is sent, and
// determines its outcome.

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

// In the memory, there is space for the protocol line and the headers before the lines, and for
// CRLF after them. So the whole message is contiguous, and the NATS client need not copy it.
// Copying took a third of the gateway's time.
const headRoomBytes = 1_024;
/** nats-server stores this number of bytes per message, plus subject, headers and payload. */
const storedMessageBytes = 34;
const CRLF = Buffer.from("\r\n");
const noMemory = Buffer.alloc(0);

/** All frames have the same class, because V8 is faster if all objects have the same shape. */
export class Frame implements FrameSink {
  readonly queue: FrameQueue;
  memory: Buffer;
  buffer: Buffer;
  length = 0;
  events = 0;
  /**
   * The message id. It is the same for every send. It is "" until the caller or the publisher sets
   * it.
   */
  messageId = "";
  /**
   * This flag is true if the caller has set the message id. Another request may then have stored a
   * message with the same id.
   */
  isNamed = false;
  waiters: FrameWaiter[] = [];
  joins: number[] = [];
  deadlineMs = Number.POSITIVE_INFINITY;
  /** The events that have a waiter. Their bytes count towards the budget. */
  joinedEvents = 0;
  joinedBytes = 0;
  /** The memory of a submitted own frame minus its lines. It also counts towards the budget. */
  overheadBytes = 0;
  departedBytes = 0;
  /**
   * Identifies the frame in its reply subject. Tokens are never reused, so a late reply cannot
   * match another frame.
   */
  token = "";
  sends = 0;
  #refusedSends: Set<number> | undefined = undefined;
  #headBytes = 0;
  #messageOverheadBytes = 0;
  firstSentMonotonicMs = 0;
  /**
   * The highest sequence that was acknowledged before the first send. The sequence of this frame
   * must be higher.
   */
  sequenceBefore = 0;
  retryMonotonicMs = Number.POSITIVE_INFINITY;
  /** This flag is true while the frame waits after a temporary error or a split batch. */
  pausing = false;
  departure: Departure = "alone";
  /**
   * The state that is shared with retries of the frame's timed-out requests. These retries wait for
   * the outcome of the frame.
   */
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

  /** Assigns the lines added since the previous call to `waiter`. Returns their length in bytes. */
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

  /**
   * Moves the frame to new memory, because the NATS client may still have the old memory in its
   * buffer.
   */
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

  /** If a line is written after this, it finds no space. */
  dropMemory(): void {
    this.memory = noMemory;
    this.buffer = noMemory;
  }

  /**
   * Builds the message (HPUB) in the memory of the frame. If `reply` is "", no answer is requested.
   * Each of the `batchHeaders` must end in CRLF.
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
    // If the length of the head changes, the head begins at a different offset. It would then
    // overwrite a message that the NATS client may still have to send.
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
