// Group commit. Lines gather in the open frame of their queue; a full one is sealed and makes way
// for another. Frames leave at the end of the event-loop turn if the windows have room, else when
// an acknowledgement makes room. Nothing is ever published from within a caller's call, so a frame
// may be joined after it was sealed, within the same turn. No timer, closure or promise per
// request.

import type { ErrorCode } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type {
  Admission,
  FrameOutcome,
  FrameSink,
  FrameWaiter,
  Lane,
  Project,
  Publisher,
} from "../base/types.ts";
import { headerBytesMax, messageIdLengthMax } from "../nats/limits.ts";
import type { NatsLink } from "../nats/link.ts";
import type { FrameScope } from "../nats/names.ts";
import {
  createStreamStates,
  refusalNow,
  type StreamStates,
  silenceNow,
} from "../nats/readiness.ts";
import { Departures } from "./departures.ts";
import { type Expiry, isPast, shareWords, takeExpired } from "./expiry.ts";
import { createMemoryPool, Frame, type FrameQueue, frameOf } from "./frame.ts";
import { createFrameQueues } from "./frame-queues.ts";
import { createInFlight } from "./in-flight.ts";
import type { PublishMetrics } from "./publish-metrics.ts";

export interface PublisherOptions {
  readonly link: NatsLink;
  readonly config: {
    readonly subjectPrefix: string;
    readonly partitions: number;
    readonly frameScope: FrameScope;
    readonly frameBytesMax: number;
    readonly framesUnackedMax: number;
    readonly ackTimeoutMs: number;
  };
  /** Monotonic milliseconds; the clock of the deadlines. */
  readonly nowMs: () => number;
  /**
   * Random, 12 characters or more, of this process alone: the message ids of shared frames begin
   * with it.
   */
  readonly processId: string;
  readonly metrics: PublishMetrics;
  readonly admission: Admission;
  readonly log: Log;
  /** Where it is shared with whoever watches them. */
  readonly streams?: StreamStates;
}

export interface GroupPublisher extends Publisher {
  /** Largest record the server takes, in bytes of payload; a stream may take less. */
  readonly recordBytesMax: number;
  readonly framesUnacked: number;
  readonly connected: boolean;
  /**
   * Refuses from now on; resolves when every frame is settled, at the latest at the deadline
   * (monotonic milliseconds).
   */
  drain(deadlineMs: number): Promise<void>;
  /** Stops for good, after drain. */
  close(): void;
}

/** How exact deadlines are. One timer for all frames, running only while there are any. */
const tickMs = 25;
/** How long a stream that said it is full is not asked again. */
const fullPauseMs = 1_000;

/** What a waiter hears whose frame has not left. */
const neverSent: Expiry = { outcome: "refused", code: "timeout" };

/** Who hears, and of which parts of a frame. */
type Told = Pick<Frame, "waiters" | "shares">;

export function createPublisher(options: PublisherOptions): GroupPublisher {
  const { link, config, nowMs, processId, metrics, admission, log } = options;
  const pool = createMemoryPool(config.frameBytesMax);
  const streams = options.streams ?? createStreamStates(config.subjectPrefix, config.partitions);
  const queues = createFrameQueues(config, streams);
  const departures = new Departures();
  const busy = new Set<FrameQueue>();
  const { ackTimeoutMs } = config;
  const inFlight = createInFlight({
    link,
    ackTimeoutMs,
    nowMs,
    metrics,
    log,
    settled,
    expired,
    storeFull,
  });
  let lastSharedId = 0;
  let flushScheduled = false;
  let tickTimer: NodeJS.Timeout | undefined;
  let draining = false;
  let drainDeadlineMs = Number.POSITIVE_INFINITY;
  let drained: (() => void) | undefined;
  let waiterFailureLogged = false;

  function recordBytesMax(): number {
    return link.messageBytesMax - headerBytesMax;
  }

  function frameBytesMax(): number {
    return Math.min(config.frameBytesMax, recordBytesMax());
  }

  function sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink {
    const queue = queues.of(lane, project.id);
    const open = queue.open;
    if (open !== undefined) {
      const bytesNeeded = open.length + bytes;
      if (bytesNeeded <= open.buffer.length) return open;
      if (bytesNeeded <= frameBytesMax() || open.length === 0) {
        grow(open, bytesNeeded);
        return open;
      }
      seal(queue, open);
    }
    queue.open = new Frame(queue, pool.take(bytes));
    return queue.open;
  }

  function grow(frame: Frame, bytes: number): void {
    const { memory } = frame;
    frame.moveTo(pool.take(bytes));
    pool.give(memory);
  }

  function seal(queue: FrameQueue, frame: Frame): void {
    queue.open = undefined;
    queue.sealed.push(frame);
  }

  function join(sink: FrameSink, waiter: FrameWaiter, deadlineMs: number): void {
    const frame = frameOf(sink);
    if (frame.length === 0) throw new Error("join frame: no line was appended");
    addWaiter(frame, waiter, deadlineMs);
  }

  function submit(
    sink: FrameSink,
    messageId: string,
    waiter: FrameWaiter,
    deadlineMs: number,
  ): void {
    const frame = frameOf(sink);
    if (frame.length === 0 || messageId.length > messageIdLengthMax) {
      throw new Error(`submit frame: ${frame.length} bytes under message id "${messageId}"`);
    }
    const { queue } = frame;
    // What came before is stored before; what comes after gets a frame behind this one.
    if (queue.open !== undefined && queue.open.length > 0) seal(queue, queue.open);
    queue.sealed.push(frame);
    frame.name(messageId);
    addWaiter(frame, waiter, deadlineMs);
  }

  function addWaiter(frame: Frame, waiter: FrameWaiter, deadlineMs: number): void {
    const { queue } = frame;
    admission.take(frame.join(waiter, deadlineMs));
    if (!queue.busy) {
      queue.busy = true;
      busy.add(queue);
      tickTimer ??= setTimeout(tick, tickMs);
    }
    markReady(queue);
  }

  function markReady(queue: FrameQueue): void {
    if (!queue.ready) {
      if (!departures.mayLeave(queue)) return;
      queue.ready = true;
      departures.push(queue);
    }
    scheduleFlush();
  }

  function scheduleFlush(): void {
    if (
      flushScheduled ||
      !departures.waiting ||
      !link.connected ||
      inFlight.count >= config.framesUnackedMax
    )
      return;
    flushScheduled = true;
    setImmediate(flush);
  }

  /** Sends one frame of each queue that waits, in turn, until a window is full. */
  function flush(): void {
    flushScheduled = false;
    const now = nowMs();
    while (link.connected && inFlight.count < config.framesUnackedMax) {
      const queue = departures.next();
      if (queue === undefined) return;
      queue.ready = false;
      const frame = nextFrame(queue);
      if (frame === undefined) {
        restIfIdle(queue);
        continue;
      }
      const refusal = refusalNow(queue.stream, now);
      if (refusal !== undefined) settle(frame, "refused", refusal);
      else if (frame.deadlineMs <= now && isPast(frame, now)) settle(frame, "refused", "timeout");
      else {
        if (frame.deadlineMs <= now) expired(frame, now, neverSent);
        departures.left(frame);
        inFlight.send(frame, now);
      }
      if (queue.hasFrame) markReady(queue);
    }
  }

  function nextFrame(queue: FrameQueue): Frame | undefined {
    const { sealed, open } = queue;
    for (let frame = sealed.shift(); frame !== undefined; frame = sealed.shift()) {
      // Lines that nobody joined are of a request that failed half-way: nobody was promised
      // anything.
      if (frame.waiters.length > 0) return named(frame);
      giveBack(frame);
    }
    if (open === undefined || open.waiters.length === 0) return undefined;
    queue.open = undefined;
    return named(open);
  }

  function named(frame: Frame): Frame {
    if (frame.messageId === "") frame.messageId = `${processId}-${(++lastSharedId).toString(36)}`;
    return frame;
  }

  function settled(frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    departures.settled(frame);
    settle(frame, outcome, code);
  }

  function settle(frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    const { queue } = frame;
    admission.release(frame.joinedBytes);
    // The client sends from the frame's memory. An acknowledgement says that all of it has left; a
    // frame that was sent again, or never answered, may still be on its way, so its memory is not
    // used again.
    if (frame.sends === 0 || (frame.sends === 1 && code === undefined)) giveBack(frame);
    else frame.letGo();
    if (queue.hasFrame) markReady(queue);
    // Its place in the process's window is free for any queue, also when this one may not send yet.
    scheduleFlush();
    restIfIdle(queue);
    tell(frame, outcome, code);
  }

  function tell(
    { waiters, shares }: Told,
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
  ): void {
    let at = 0;
    for (const waiter of waiters) {
      try {
        waiter.frameSettled(outcome, code, shares[at + 1]!, shares[at + 2]!);
      } catch (error) {
        if (!waiterFailureLogged)
          log.error({ err: error }, "a waiter threw when its frame settled");
        waiterFailureLogged = true;
      }
      at += shareWords;
    }
  }

  /** Some of its waiters have no time left; the frame goes on for the others. */
  function expired(frame: Frame, now: number, expiry: Expiry): void {
    const gone = takeExpired(frame, now, expiry);
    admission.release(gone.bytesCut);
    tell(gone, expiry.outcome, expiry.code);
  }

  function giveBack(frame: Frame): void {
    pool.give(frame.memory);
    frame.letGo();
  }

  function restIfIdle(queue: FrameQueue): void {
    if (!queue.busy || queue.unacked > 0 || queue.hasFrame) return;
    queue.busy = false;
    busy.delete(queue);
    if (busy.size === 0) drained?.();
  }

  function storeFull(frame: Frame, wholeServer: boolean): void {
    const fullUntilMs = nowMs() + fullPauseMs;
    frame.queue.stream.fullUntilMs = fullUntilMs;
    if (wholeServer) streams.allFullUntil(fullUntilMs);
  }

  function tick(): void {
    tickTimer = undefined;
    const now = nowMs();
    inFlight.tick(now);
    for (const queue of busy) expireWaiting(queue, now);
    if (now >= drainDeadlineMs) abandon();
    if (busy.size > 0) tickTimer ??= setTimeout(tick, tickMs);
  }

  /** Those whose frame never left by their deadline. */
  function expireWaiting(queue: FrameQueue, now: number): void {
    if (queue.sealed.length > 0) {
      const isOver = (frame: Frame): boolean => frame.deadlineMs <= now && isPast(frame, now);
      for (const frame of queue.sealed.take(isOver)) settle(frame, "refused", "timeout");
      for (const frame of queue.sealed) if (frame.deadlineMs <= now) expired(frame, now, neverSent);
    }
    const { open } = queue;
    if (open === undefined || open.deadlineMs > now) return;
    if (!isPast(open, now)) {
      expired(open, now, neverSent);
      return;
    }
    queue.open = undefined;
    settle(open, "refused", "timeout");
  }

  function abandon(): void {
    inFlight.abandon();
    for (const queue of busy) {
      for (let frame = nextFrame(queue); frame !== undefined; frame = nextFrame(queue)) {
        settle(frame, "refused", "draining");
      }
    }
  }

  async function drain(deadlineMs: number): Promise<void> {
    draining = true;
    drainDeadlineMs = deadlineMs;
    if (busy.size === 0) return;
    await new Promise<void>((resolve) => {
      drained = resolve;
    });
  }

  link.onChange((connected) => {
    if (connected) scheduleFlush();
  });

  return {
    get frameBytesMax() {
      return frameBytesMax();
    },
    get recordBytesMax() {
      return recordBytesMax();
    },
    get framesUnacked() {
      return inFlight.count;
    },
    get connected() {
      return link.connected;
    },
    refusal() {
      if (draining) return "draining";
      if (!link.connected) return "unavailable";
      return streams.refusalOfAll(nowMs);
    },
    refusalOf(lane, projectId) {
      const { stream } = queues.of(lane, projectId);
      return (
        stream.refusal ?? (stream.silence === undefined ? undefined : silenceNow(stream, nowMs()))
      );
    },
    recordBytesMaxOf(lane, projectId) {
      return (
        Math.min(link.messageBytesMax, queues.of(lane, projectId).stream.messageBytesMax) -
        headerBytesMax
      );
    },
    sharedFrame,
    join,
    ownFrame(lane, project, bytes) {
      return new Frame(queues.of(lane === "live" ? "bulk" : lane, project.id), pool.take(bytes));
    },
    submit,
    discard: (sink) => giveBack(frameOf(sink)),
    drain,
    close() {
      clearTimeout(tickTimer);
      inFlight.close();
    },
  };
}
