// Collects the lines of many requests in frames. Each line is appended to the open frame of its
// queue. Frames are sent at the end of the event loop iteration, or when an acknowledgement frees a
// slot of the window.

import type { ErrorCode, Problem } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { Log } from "../../platform/base/log.ts";
import type { SentWith, SentWithRuns } from "../../platform/base/sent-with.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import { type FrameScope, headerBytesMax, messageIdLengthMax } from "../../platform/nats/names.ts";
import {
  noteLines,
  noteOutage,
  outageMs,
  refusalNow,
  StreamStates,
  silenceNow,
} from "../../platform/nats/readiness.ts";
import type { FrameSink } from "../../records/frame-sink.ts";
import type { Admission } from "../intake/admission.ts";
import type { Project } from "../projects/project.ts";
import type { AtomicBatch } from "./atomic-batches.ts";
import { Distance } from "./distance.ts";
import { type Expiry, isPast } from "./expiry.ts";
import { Flushes, NextFrames } from "./flushes.ts";
import { type Fate, Frame, type FrameQueue, frameOf } from "./frame.ts";
import { FrameMemory } from "./frame-memory.ts";
import { FrameQueues } from "./frame-queues.ts";
import { InFlight } from "./in-flight.ts";
import type { PublishMetrics } from "./outcomes.ts";
import type { FrameOutcome, FrameWaiter, Publisher, RequestWaiter } from "./port.ts";
import { Settlement } from "./settlement.ts";
import { TimedOutLines, UuidlessLines } from "./timed-out-lines.ts";

interface PublisherOptions {
  readonly link: NatsLink;
  readonly config: {
    readonly subjectPrefix: string;
    readonly partitions: number;
    readonly frameScope: FrameScope;
    readonly frameBytesMax: number;
    readonly framesUnackedMax: number;
    readonly ackTimeoutMs: number;
    readonly batchesFrom?: number | undefined;
  };
  readonly monotonicMs: () => number;
  /** A random id of this process, with at least 12 characters. */
  readonly processId: string;
  readonly metrics: PublishMetrics;
  readonly admission: Admission;
  readonly log: Log;
  /** Returns an id of an event. The id must be the same whenever the client sends the event. */
  readonly identify: (record: Buffer, sentWith: SentWith) => string;
  readonly streams?: StreamStates;
}

const tickMs = 25;
const fullPauseMs = 1_000;

const neverSent: Expiry = { outcome: "refused", code: "unavailable" };

export class GroupPublisher implements Publisher {
  readonly #link: NatsLink;
  readonly #config: PublisherOptions["config"];
  readonly #monotonicMs: () => number;
  readonly #admission: Admission;
  readonly #memory: FrameMemory;
  readonly #settlement: Settlement;
  readonly #next: NextFrames;
  readonly #streams: StreamStates;
  readonly #queues: FrameQueues;
  readonly #flushes: Flushes;
  readonly #inFlight: InFlight;
  readonly #timedOut: TimedOutLines;
  readonly #busy = new Set<FrameQueue>();
  #tickTimer: NodeJS.Timeout | undefined;
  #isDraining = false;
  #drainDeadlineMs = Number.POSITIVE_INFINITY;
  #drained: (() => void) | undefined;
  readonly #tickNow = (): void => this.#tick();

  constructor(options: PublisherOptions) {
    const { link, config, admission, log } = options;
    this.#timedOut = new TimedOutLines(options);
    this.#link = link;
    this.#config = config;
    this.#monotonicMs = options.monotonicMs;
    this.#admission = admission;
    this.#memory = new FrameMemory(config.frameBytesMax);
    const allNotified = (): void => this.#endDrain();
    this.#settlement = new Settlement({ admission, memory: this.#memory, log, allNotified });
    this.#next = new NextFrames({
      ...options,
      discard: (frame) => this.#settlement.discard(frame),
    });
    this.#streams = options.streams ?? new StreamStates(config.subjectPrefix, config.partitions);
    const rest = { monotonicMs: options.monotonicMs, distance: new Distance(options) };
    this.#queues = new FrameQueues({ ...config, ...rest }, this.#streams);
    this.#flushes = new Flushes({
      ...options,
      next: this.#next,
      sendNext: (queue, monotonicMs, batch) => this.#sendNext(queue, monotonicMs, batch),
      retryAlone: (frame, monotonicMs) => this.#inFlight.retryAlone(frame, monotonicMs),
      sendBatch: (batch, monotonicMs) => this.#sendBatch(batch, monotonicMs),
    });
    this.#inFlight = new InFlight({
      ...options,
      ackTimeoutMs: config.ackTimeoutMs,
      settled: (frame, outcome, code) => {
        frame.queue.departures.settled(frame);
        this.#settle(frame, outcome, code);
      },
      expired: (frame, monotonicMs, expiry) => this.#expireSent(frame, monotonicMs, expiry),
      storeFull: (frame, isWholeServer) => this.#storeFull(frame, isWholeServer),
      flushes: this.#flushes,
    });
    link.onChange((connected) => {
      if (!connected) this.#streams.noteOutageOfAll(options.monotonicMs());
    });
  }

  get recordBytesMax(): number {
    return this.#link.messageBytesMax - headerBytesMax;
  }

  get frameBytesMax(): number {
    return Math.min(this.#config.frameBytesMax, this.recordBytesMax);
  }

  get framesUnacked(): number {
    return this.#inFlight.count;
  }

  refusal(requestBytes = Number.POSITIVE_INFINITY): ErrorCode | undefined {
    if (this.#isDraining) return "draining";
    if (!this.#link.connected && this.#admission.isLarge(requestBytes)) return "unavailable";
    return this.#streams.refusalOfAll(this.#monotonicMs);
  }

  refusalOf(
    lane: Lane,
    projectId: string,
    requestBytes = Number.POSITIVE_INFINITY,
  ): Problem | undefined {
    const { stream } = this.#queues.of(lane, projectId);
    if (stream.refusal !== undefined || stream.silence === undefined) return stream.refusal;
    if (!this.#admission.isLarge(requestBytes)) return undefined;
    return silenceNow(stream, this.#monotonicMs());
  }

  outageMs(lane: Lane | undefined, projectId: string): number {
    const monotonicMs = this.#monotonicMs();
    return lane === undefined
      ? this.#streams.outageMs(monotonicMs)
      : outageMs(this.#queues.of(lane, projectId).stream, monotonicMs);
  }

  streamOf(lane: Lane, projectId: string): string {
    return this.#queues.of(lane, projectId).stream.name;
  }

  recordBytesMaxOf(lane: Lane, projectId: string): number {
    const { stream } = this.#queues.of(lane, projectId);
    return Math.min(this.#link.messageBytesMax, stream.messageBytesMax) - headerBytesMax;
  }

  sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink {
    const queue = this.#queues.of(lane, project.id);
    const { open } = queue;
    if (open !== undefined) {
      const bytesNeeded = open.length + bytes;
      if (bytesNeeded <= open.buffer.length) return open;
      if (bytesNeeded <= this.frameBytesMax || open.length === 0) {
        this.#move(open, this.#memory.takeShared(bytesNeeded));
        return open;
      }
      return this.#openNext(queue, open, bytes);
    }
    queue.open = new Frame(queue, this.#memory.takeShared(bytes));
    return queue.open;
  }

  /**
   * Lines without a waiter move to the new frame, so that all lines of a request are in one frame
   * and have one outcome.
   */
  #openNext(queue: FrameQueue, full: Frame, bytes: number): Frame {
    const movedBytes = full.length - full.joinedBytes;
    const next = new Frame(queue, this.#memory.takeShared(movedBytes + bytes));
    full.buffer.copy(next.buffer, 0, full.joinedBytes, full.length);
    next.commit(movedBytes, full.events - full.joinedEvents);
    full.rollback();
    queue.seal();
    queue.open = next;
    return next;
  }

  #move(frame: Frame, memory: Buffer): void {
    const before = frame.memory;
    frame.moveTo(memory);
    this.#memory.give(before);
  }

  join(sink: FrameSink, waiter: RequestWaiter, deadlineMs: number, uuidless?: SentWithRuns): void {
    const frame = frameOf(sink);
    if (frame.length === 0) throw new Error("cannot join the frame: no line was appended");
    if (uuidless === undefined) {
      this.#addWaiter(frame, waiter, deadlineMs);
      return;
    }
    const lines = new UuidlessLines(waiter, uuidless);
    const events = frame.events - frame.joinedEvents;
    const fate = this.#timedOut.takeOut(frame, lines);
    if (fate === undefined) this.#addWaiter(frame, lines, deadlineMs);
    else joinRetry(fate, events, { waiter, deadlineMs });
  }

  ownFrame(lane: Lane, project: Project, bytes: number): FrameSink {
    const queue = this.#queues.of(lane === "live" ? "bulk" : lane, project.id);
    return new Frame(queue, this.#memory.takeOwn(bytes));
  }

  submit(sink: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void {
    const frame = frameOf(sink);
    if (frame.length === 0 || messageId.length > messageIdLengthMax) {
      throw new Error(
        `cannot submit a frame of ${frame.length} bytes with message id "${messageId}": it is empty, or the id is too long`,
      );
    }
    const { queue } = frame;
    // This preserves the order: earlier lines are stored first, and later lines get another frame.
    if (queue.open !== undefined && queue.open.length > 0) queue.seal();
    this.#fit(frame);
    queue.sealed.push(frame);
    if (messageId !== "") frame.name(messageId);
    this.#addWaiter(frame, waiter, deadlineMs);
  }

  #fit(frame: Frame): void {
    const { length } = frame;
    if (this.#memory.ownBytesFor(length) < frame.memory.length)
      this.#move(frame, this.#memory.takeOwn(length));
    frame.overheadBytes = frame.memory.length - length;
    this.#admission.take(frame.overheadBytes);
  }

  discard(sink: FrameSink): void {
    this.#settlement.discard(frameOf(sink));
  }

  /**
   * Rejects new events. Resolves when every frame has an outcome, or when the deadline has passed.
   */
  async drain(deadlineMs: number): Promise<void> {
    this.#isDraining = true;
    this.#inFlight.stopHolding();
    this.#drainDeadlineMs = deadlineMs;
    if (this.#isIdle) return;
    await new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  /** Must be called after `drain`. */
  close(): void {
    clearTimeout(this.#tickTimer);
    this.#inFlight.close();
  }

  #addWaiter(frame: Frame, waiter: FrameWaiter, deadlineMs: number): void {
    noteLines(frame.queue.stream, this.#monotonicMs);
    const { queue } = frame;
    this.#admission.take(frame.join(waiter, deadlineMs));
    if (waiter.span !== undefined) frame.span = waiter.span.publishes(frame.span, queue);
    if (!queue.busy) {
      queue.busy = true;
      this.#busy.add(queue);
      this.#tickTimer ??= setTimeout(this.#tickNow, tickMs);
    }
    this.#flushes.markReady(queue);
  }

  #sendNext(queue: FrameQueue, monotonicMs: number, batch: AtomicBatch | undefined): void {
    const frame = this.#next.of(queue);
    if (frame === undefined) {
      this.#removeIfIdle(queue);
      return;
    }
    const refusal = refusalNow(queue.stream, monotonicMs);
    if (refusal !== undefined || isPast(frame, monotonicMs)) {
      this.#settle(frame, "refused", refusal ?? neverSent.code);
      return;
    }
    this.#expireSome(frame, monotonicMs);
    if (batch !== undefined) {
      queue.departures.leftInBatch(frame);
      batch.add(frame);
      return;
    }
    queue.departures.left(frame);
    this.#inFlight.send(frame, monotonicMs);
  }

  #sendBatch(batch: AtomicBatch, monotonicMs: number): void {
    batch.departures.batchLeft();
    this.#inFlight.sendBatch(batch, monotonicMs);
  }

  #settle(frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    const { queue, fate, span } = frame;
    if (span !== undefined) span.ended(outcome, code, frame);
    if (fate !== undefined) {
      fate.frame = undefined;
      fate.isStored = outcome === "stored" || outcome === "duplicate";
    }
    this.#settlement.release(frame, code === undefined);
    if (queue.hasFrame) this.#flushes.markReady(queue);
    // All queues of the stream can use the free slot, even if this queue may not.
    this.#flushes.wake(queue.departures);
    this.#settlement.notify(frame, outcome, code);
    this.#removeIfIdle(queue);
  }

  #removeIfIdle(queue: FrameQueue): void {
    if (!queue.busy || queue.unacked > 0 || queue.hasFrame) return;
    queue.busy = false;
    this.#busy.delete(queue);
    this.#endDrain();
  }

  get #isIdle(): boolean {
    return this.#busy.size === 0 && !this.#settlement.isNotifying;
  }

  #endDrain(): void {
    if (this.#isIdle) this.#drained?.();
  }

  #storeFull(frame: Frame, isWholeServer: boolean): void {
    const fullUntilMonotonicMs = this.#monotonicMs() + fullPauseMs;
    const { stream } = frame.queue;
    stream.fullUntilMonotonicMs = fullUntilMonotonicMs;
    stream.isServerFull = isWholeServer;
    noteOutage(stream, this.#monotonicMs());
    if (isWholeServer) this.#streams.allFullUntil(fullUntilMonotonicMs);
  }

  #tick(): void {
    this.#tickTimer = undefined;
    const monotonicMs = this.#monotonicMs();
    this.#inFlight.tick(monotonicMs);
    for (const queue of this.#busy) this.#expireWaiting(queue, monotonicMs);
    if (monotonicMs >= this.#drainDeadlineMs) this.#abandon();
    if (this.#busy.size > 0) this.#tickTimer ??= setTimeout(this.#tickNow, tickMs);
  }

  #expireWaiting(queue: FrameQueue, monotonicMs: number): void {
    for (const frame of queue.takePast(monotonicMs)) {
      noteOutage(queue.stream, monotonicMs);
      this.#settle(frame, "refused", neverSent.code);
    }
    if (queue.sealed.length > 0)
      for (const frame of queue.sealed) this.#expireSome(frame, monotonicMs);
    if (queue.open !== undefined) this.#expireSome(queue.open, monotonicMs);
  }

  #expireSome(frame: Frame, monotonicMs: number): void {
    if (frame.deadlineMs <= monotonicMs) this.#settlement.expire(frame, monotonicMs, neverSent);
  }

  #expireSent(frame: Frame, monotonicMs: number, expiry: Expiry): void {
    const { waiters, ranges } = this.#settlement.expire(frame, monotonicMs, expiry);
    for (const [place, range] of ranges.entries()) {
      const waiter = waiters[place];
      if (waiter instanceof UuidlessLines) this.#timedOut.remember(frame, waiter, range);
    }
  }

  #abandon(): void {
    this.#inFlight.abandon();
    for (const queue of this.#busy) {
      for (let frame = this.#next.of(queue); frame !== undefined; frame = this.#next.of(queue))
        this.#settle(frame, "refused", "draining");
    }
  }
}

function joinRetry(
  { frame }: Fate,
  events: number,
  { waiter, deadlineMs }: { waiter: FrameWaiter; deadlineMs: number },
): void {
  const retryWaiter: FrameWaiter = {
    frameSettled: (outcome, code) =>
      waiter.frameSettled(outcome === "stored" ? "duplicate" : outcome, code, events, 0, 0),
  };
  if (frame === undefined) retryWaiter.frameSettled("stored", undefined, events, 0, 0);
  else frame.join(retryWaiter, deadlineMs);
}
