// A frame and its queue. Both are state only: the publisher decides when a frame leaves and how it
// ends.

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

/** The frames in flight of one project, or of one partition, for one kind of queue. */
export class FrameQueue {
  readonly lane: Lane;
  readonly subject: string;
  readonly stream: StreamState;
  /** The departures of the stream, shared by all its queues. */
  readonly departures: Departures<Frame>;
  /** Maximum number of unacknowledged frames. Departures may allow more. */
  readonly window: number;
  /** True for bulk and history, whose frames wait for live ones. */
  readonly background: boolean;
  /** The shared frame that lines are appended to. */
  open: Frame | undefined = undefined;
  /** Frames that accept no more lines, in the order of sending. */
  readonly sealed = new Fifo<Frame>();
  unacked = 0;
  /** The bytes of the unacknowledged frames. Counted for a background queue only. */
  unackedBytes = 0;
  /** Whether the queue is among those that may send. */
  ready = false;
  /** Whether the queue has waiting or unacknowledged frames. */
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

  /** Closes the open frame to more lines. The next line gets a new frame. */
  seal(): void {
    if (this.open !== undefined) this.sealed.push(this.open);
    this.open = undefined;
  }

  /** Removes and returns the frames in which every waiter's deadline is past. */
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

// A frame's memory has room for the protocol line and the headers before the lines, and for the
// CRLF after them, so that the message is contiguous. If it is the only message of an event-loop
// turn, the client writes it to the socket straight from this memory; it copies several messages of
// one turn together. When messages were passed in pieces, the client copied each into fresh memory
// for every send, and clearing and collecting that memory took a third of the gateway's time.
const headRoomBytes = 1_024;
/** Bytes that nats-server stores with each message besides its subject, headers and payload. */
const storedMessageBytes = 34;
const CRLF = Buffer.from("\r\n");
const noMemory = Buffer.alloc(0);

/** One object shape for shared and own frames. */
export class Frame implements FrameSink {
  readonly queue: FrameQueue;
  /** All of the frame's memory, as taken from the pool. */
  memory: Buffer;
  /** The part of the memory that is for lines. */
  buffer: Buffer;
  length = 0;
  events = 0;
  /** Empty until the caller or the publisher sets it; the same on every attempt. */
  messageId = "";
  /**
   * The caller set the message id, so another request may have stored a message with the same id.
   * All other frames, and frames submitted with the id "", have ids that are unique to this
   * process.
   */
  isNamed = false;
  waiters: FrameWaiter[] = [];
  /**
   * Deadline, events and bytes of each waiter, in a flat array, so that a waiter needs no object.
   */
  joins: number[] = [];
  /** The earliest deadline of its waiters, monotonic milliseconds. */
  deadlineMs = Number.POSITIVE_INFINITY;
  /** Lines that a waiter has joined with. Their bytes count against the admission budget. */
  joinedEvents = 0;
  joinedBytes = 0;
  /**
   * The memory of a submitted own frame beyond its lines, which counts against the budget too. A
   * request of one event may hold twice its bytes.
   */
  overheadBytes = 0;
  /**
   * The frame's bytes when it left, if its queue is a background one. Departures counts them as
   * unacknowledged until the frame is settled.
   */
  departedBytes = 0;
  /**
   * Identifies this frame in its reply subject. Tokens are never reused, so a late reply finds no
   * frame.
   */
  token = "";
  sends = 0;
  #refusedSends: Set<number> | undefined = undefined;
  /** Bytes before the lines in the last message built in this memory; 0 for none. */
  #headBytes = 0;
  /** Bytes of the message in the stream besides its lines; 0 before the first send. */
  #messageOverheadBytes = 0;
  firstSentMonotonicMs = 0;
  /**
   * The highest sequence that the stream had acknowledged when this frame was first sent. The
   * frame's own sequence is higher.
   */
  sequenceBefore = 0;
  /** When to send the frame again if no answer arrives before. */
  retryMonotonicMs = Number.POSITIVE_INFINITY;
  /**
   * The last send got an answer that does not settle the frame, or the frame's batch was split. The
   * frame waits until retryMonotonicMs to be sent again.
   */
  pausing = false;
  departure: Departure = "alone";
  /** Set once some of its events are remembered as timed out. */
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
   * Assigns to this waiter the lines that were added since the last call, and returns their bytes.
   * Lines are in the order of the waiters.
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
   * Moves the lines to other memory, which has room for them. The caller owns the old memory.
   */
  moveTo(memory: Buffer): void {
    const buffer = roomForLines(memory);
    this.buffer.copy(buffer, 0, 0, this.length);
    this.memory = memory;
    this.buffer = buffer;
    this.#headBytes = 0;
  }

  /**
   * Moves the lines of a frame that was sent to new memory. An earlier send may still be in the
   * client's buffer, which reads the old memory.
   */
  leaveMemory(): void {
    this.moveTo(Buffer.allocUnsafeSlow(memoryBytesFor(this.length)));
  }

  /** The message's bytes in the stream per byte of its lines. */
  get messageBytesPerByte(): number {
    return 1 + this.#messageOverheadBytes / Math.max(1, this.length);
  }

  /** Records that a send was refused. A second answer to the same send changes nothing. */
  refuse(send: number): void {
    this.#refusedSends ??= new Set();
    this.#refusedSends.add(send);
  }

  /** Every send was refused: the frame is certainly not stored. */
  get isRefused(): boolean {
    return (this.#refusedSends?.size ?? 0) >= this.sends;
  }

  name(messageId: string): void {
    this.messageId = messageId;
    this.isNamed = true;
  }

  /**
   * Releases its memory: a line that is written too late finds no room, rather than the memory of
   * another frame.
   */
  dropMemory(): void {
    this.memory = noMemory;
    this.buffer = noMemory;
  }

  /**
   * Builds the message (HPUB) in the frame's own memory. The lines stay unchanged, so it can be
   * built again: over the previous one, in which at most the number of the send then changes, or in
   * other memory. `reply` is empty if no answer is wanted. `batchHeaders` are the headers of a
   * frame in an atomic batch, each ending in CRLF.
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
    // A head of another length begins at another offset and would corrupt an earlier send.
    if (this.#headBytes > 0 && this.#headBytes !== head.length) this.leaveMemory();
    this.#headBytes = head.length;
    const end = headRoomBytes + this.length;
    this.memory.write(head, start, "latin1");
    CRLF.copy(this.memory, end);
    return this.memory.subarray(start, end + CRLF.length);
  }
}

/** The outcome of a frame whose events are remembered. */
export class Fate {
  /** Undefined once it is settled. */
  frame: Frame | undefined;
  isStored = false;

  constructor(frame: Frame) {
    this.frame = frame;
  }
}

/** Returns the frame that the publisher handed out as a sink. */
export function frameOf(sink: FrameSink): Frame {
  if (!(sink instanceof Frame)) throw new Error("use frame: this publisher did not create it");
  return sink;
}

/** Returns the memory in bytes that a frame needs for `lineBytes` of lines. */
export function memoryBytesFor(lineBytes: number): number {
  return headRoomBytes + lineBytes + CRLF.length;
}

function roomForLines(memory: Buffer): Buffer {
  return memory.subarray(headRoomBytes, memory.length - CRLF.length);
}
