// A frame, and the queue it belongs to. Both are state only: the publisher decides when a frame
// leaves and what becomes of it.

import { Buffer } from "node:buffer";
import type { Lane } from "../../platform/base/lane.ts";
import {
  eventsHeader,
  messageIdHeader,
  schemaHeader,
  schemaKnown,
} from "../../platform/nats/names.ts";
import type { StreamState } from "../../platform/nats/readiness.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Departure, Departures } from "./departures.ts";
import { isPast } from "./expiry.ts";
import { Fifo } from "./fifo.ts";
import type { FrameWaiter } from "./port.ts";

/** The frames that one project, or one partition, has under way on one of the ways to the store. */
export class FrameQueue {
  readonly lane: Lane;
  readonly subject: string;
  readonly stream: StreamState;
  /** What leaves for that stream, shared by all its queues. */
  readonly departures: Departures<Frame>;
  /** How many frames may be unacknowledged at a time; see Departures for when there may be more. */
  readonly window: number;
  /** True for bulk and history: their frames wait for live ones. */
  readonly background: boolean;
  /** The shared frame that lines are appended to. */
  open: Frame | undefined = undefined;
  /** Frames that will get no more lines, in the order they are to be sent. */
  readonly sealed = new Fifo<Frame>();
  unacked = 0;
  /** The bytes of the unacknowledged frames. Counted for a background queue only. */
  unackedBytes = 0;
  /** Whether the queue is among those that may send. */
  ready = false;
  /** Whether the queue is among those that have anything under way. */
  busy = false;

  constructor(
    stream: StreamState,
    departures: Departures<Frame>,
    options: { lane: Lane; subject: string; window: number; background: boolean },
  ) {
    this.stream = stream;
    this.departures = departures;
    this.lane = options.lane;
    this.subject = options.subject;
    this.window = options.window;
    this.background = options.background;
  }

  get hasFrame(): boolean {
    return this.sealed.length > 0 || (this.open !== undefined && this.open.waiters.length > 0);
  }

  /** The open frame gets no more lines; the next line gets another one. */
  seal(): void {
    if (this.open !== undefined) this.sealed.push(this.open);
    this.open = undefined;
  }

  /** Takes out the frames in which no waiter has time left, and returns them. */
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

// A frame's memory has room before the lines for the protocol's line and the headers, and behind
// them for the CRLF, so that the message is one piece. The client writes a message to its socket
// straight from this memory when it is the only one of an event-loop turn. Several messages of one
// turn it packs together, which copies them. Handed to the client in pieces, every message was
// copied into fresh memory for each send: a third of the gateway's time under batches went into
// clearing those pages and collecting them.
const headRoomBytes = 1_024;
/** What nats-server writes with each message besides its subject, headers and payload. */
const storedMessageBytes = 34;
const CRLF = Buffer.from("\r\n");
const noMemory = Buffer.alloc(0);

/** One object shape for shared and own frames. */
export class Frame implements FrameSink {
  readonly queue: FrameQueue;
  /** All of the frame's memory, as the pool gave it. */
  memory: Buffer;
  /** The part of the memory that is for lines. */
  buffer: Buffer;
  length = 0;
  events = 0;
  /** Empty until the caller or the publisher names it; the same on every attempt. */
  messageId = "";
  /**
   * The frame's caller submitted it, so another request may have stored the same message id before.
   * All other frames have an id of this process alone, as has a frame submitted under "".
   */
  isNamed = false;
  waiters: FrameWaiter[] = [];
  /**
   * Each waiter's deadline, events and bytes, one waiter after another, so that no object is made
   * for a waiter.
   */
  joins: number[] = [];
  /** The earliest deadline of its waiters, monotonic milliseconds. */
  deadlineMs = Number.POSITIVE_INFINITY;
  /** Lines that a waiter has joined with. Their bytes count against the admission budget. */
  joinedEvents = 0;
  joinedBytes = 0;
  /**
   * What an own frame holds beyond its lines, once it is submitted: that counts against the budget
   * too. A request of one event may hold twice its bytes.
   */
  overheadBytes = 0;
  /**
   * The frame's bytes when it left, in a background queue. Departures counts them as unacknowledged
   * until the frame is settled.
   */
  departedBytes = 0;
  /**
   * Names this frame in its reply subject. No other frame ever has this token, so a reply that
   * comes late finds no frame.
   */
  token = "";
  sends = 0;
  #refusedSends: Set<number> | undefined = undefined;
  /** The bytes before the lines in the message that was made last in this memory; 0 for none. */
  #headBytes = 0;
  /** What the message takes in the stream beyond its lines; 0 before the frame was sent. */
  #messageOverheadBytes = 0;
  firstSentMonotonicMs = 0;
  /**
   * The highest sequence that the stream had acknowledged when this frame was first sent. The
   * frame's own sequence is higher.
   */
  sequenceBefore = 0;
  /** When to send the frame again if no answer is heard before. */
  retryMonotonicMs = Number.POSITIVE_INFINITY;
  /**
   * The last send was answered, but not with the acknowledgement that settles the frame, or its
   * batch was parted. The frame waits until retryMonotonicMs to be sent again.
   */
  pausing = false;
  departure: Departure = "alone";
  /** Set once some of its events are remembered. */
  fate: Fate | undefined = undefined;

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

  /**
   * Gives this waiter the lines that were added since the last call, and returns their bytes. Lines
   * follow one another in the order of the waiters.
   */
  join(waiter: FrameWaiter, deadlineMs: number): number {
    const bytes = this.length - this.joinedBytes;
    this.waiters.push(waiter);
    this.joins.push(deadlineMs, this.events - this.joinedEvents, bytes);
    this.joinedEvents = this.events;
    this.joinedBytes = this.length;
    if (deadlineMs < this.deadlineMs) this.deadlineMs = deadlineMs;
    return bytes;
  }

  /**
   * Moves the lines to other memory, which has room for them. The old memory is the caller's again.
   */
  moveTo(memory: Buffer): void {
    const buffer = roomForLines(memory);
    this.buffer.copy(buffer, 0, 0, this.length);
    this.memory = memory;
    this.buffer = buffer;
    this.#headBytes = 0;
  }

  /**
   * Moves the lines of a frame that was sent to memory of its own. An earlier send may still be in
   * the client's buffer, and goes out from the old memory.
   */
  leaveMemory(): void {
    this.moveTo(Buffer.allocUnsafeSlow(memoryBytesFor(this.length)));
  }

  /** Bytes that the message takes in the stream for each byte of its lines. */
  get messageBytesPerByte(): number {
    return 1 + this.#messageOverheadBytes / Math.max(1, this.length);
  }

  /** Notes that a send was answered with a refusal, be it the second answer to that send. */
  refuse(send: number): void {
    this.#refusedSends ??= new Set();
    this.#refusedSends.add(send);
  }

  /** Every send was answered with a refusal: the frame is certainly not stored. */
  get isRefused(): boolean {
    return (this.#refusedSends?.size ?? 0) >= this.sends;
  }

  name(messageId: string): void {
    this.messageId = messageId;
    this.isNamed = true;
  }

  /**
   * Gives up its memory: a line that comes too late finds no room, rather than the memory of
   * another frame.
   */
  letGo(): void {
    this.memory = noMemory;
    this.buffer = noMemory;
  }

  /**
   * The message as the protocol has it (HPUB), in the frame's own memory. The lines stay as they
   * are, so it can be made again: over the one before, of which at most the number of the send then
   * changes, or in other memory. `reply` is empty where no answer is wanted. `batchHeaders` are
   * those of a frame in an atomic batch, each ending in CRLF.
   */
  message(reply: string, batchHeaders = ""): Buffer {
    const headers =
      `NATS/1.0\r\n${messageIdHeader}: ${this.messageId}\r\n${eventsHeader}: ${this.events}\r\n` +
      `${schemaHeader}: ${schemaKnown}\r\nContent-Type: application/x-ndjson\r\n` +
      `${batchHeaders}\r\n`;
    const { subject } = this.queue;
    this.#messageOverheadBytes = headers.length + subject.length + storedMessageBytes;
    const to = reply === "" ? subject : `${subject} ${reply}`;
    const head = `HPUB ${to} ${headers.length} ${headers.length + this.length}\r\n${headers}`;
    const start = headRoomBytes - head.length;
    if (start < 0)
      throw new Error(
        `make message: ${head.length} bytes before the lines, room for ${headRoomBytes}`,
      );
    // A head of another length begins elsewhere: over an earlier send, the two would be mixed.
    if (this.#headBytes > 0 && this.#headBytes !== head.length) this.leaveMemory();
    this.#headBytes = head.length;
    const end = headRoomBytes + this.length;
    this.memory.write(head, start, "latin1");
    CRLF.copy(this.memory, end);
    return this.memory.subarray(start, end + CRLF.length);
  }
}

/** What became of a frame whose events are remembered. */
export class Fate {
  /** Undefined once it is settled. */
  frame: Frame | undefined;
  isStored = false;

  constructor(frame: Frame) {
    this.frame = frame;
  }
}

/** The frame that the publisher gave out as a sink. */
export function frameOf(sink: FrameSink): Frame {
  if (!(sink instanceof Frame)) throw new Error("use frame: it is not one of this publisher's");
  return sink;
}

/** How many bytes of memory a frame needs for `lineBytes` of lines. */
export function memoryBytesFor(lineBytes: number): number {
  return headRoomBytes + lineBytes + CRLF.length;
}

function roomForLines(memory: Buffer): Buffer {
  return memory.subarray(headRoomBytes, memory.length - CRLF.length);
}
