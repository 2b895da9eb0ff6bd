// Group commit. The lines of a project gather in its open frame; a full one is sealed and makes way for another. Frames leave
// at the end of the event-loop turn if the windows have room, else when an acknowledgement makes room. Nothing is ever published
// from within a caller's call, so a frame may be joined after it was sealed, within the same turn. No timer, closure or promise
// per request.

import type { ErrorCode } from "../errors.ts";
import type { Admission, FrameOutcome, FrameSink, FrameWaiter, Lane, Project, Publisher } from "../types.ts";
import type { NatsLink, PublishLog } from "./connection.ts";
import { Departures } from "./departures.ts";
import { createMemoryPool, Frame, headerBytesMax, messageIdLengthMax, ProjectLane } from "./frame.ts";
import { createInFlight } from "./in-flight.ts";
import type { PublishMetrics } from "./publish-metrics.ts";
import { createStreamStates } from "./stream-states.ts";
import { partitionOf, subjectOf } from "./subject.ts";

export interface PublisherOptions {
  readonly link: NatsLink;
  readonly config: {
    readonly subjectPrefix: string;
    readonly partitions: number;
    readonly frameBytesMax: number;
    readonly framesUnackedMax: number;
    readonly ackTimeoutMs: number;
  };
  /** Monotonic milliseconds; the clock of the deadlines. */
  readonly nowMs: () => number;
  /** Random, 12 characters or more, of this process alone: the message ids of shared frames begin with it. */
  readonly processId: string;
  readonly metrics: PublishMetrics;
  readonly admission: Admission;
  readonly log: PublishLog;
}

export interface GroupPublisher extends Publisher {
  readonly framesUnacked: number;
  readonly connected: boolean;
  /** Refuses from now on; resolves when every frame is settled, at the latest at the deadline (monotonic milliseconds). */
  drain(deadlineMs: number): Promise<void>;
  /** Stops for good, after drain. */
  close(): void;
}

/**
 * The ways frames take. On the live lane, the frames of large requests go beside the shared ones (`bulk`), so that a single event
 * does not wait for megabytes that came before it. History has one way, which keeps its order.
 */
type Way = Lane | "bulk";

/**
 * Frames a project may have unacknowledged on a lane. For history one is what keeps the order, also when a frame is sent
 * again. For live events it was measured (sync_interval always, 128 requests at a time, two cores shared with the server):
 * windows of 1, 2 and 4 took 93,000, 77,000 and 80,000 events/s with 27,000, 40,000 and 54,000 fsyncs per million; a wider
 * one spends on more PubAcks what it gains in overlap, for frames of 512 KiB too.
 */
const windows: Readonly<Record<Way, number>> = { live: 1, bulk: 1, historical: 1 };
/** How exact deadlines are. One timer for all frames, running only while there are any. */
const tickMs = 25;
/** How long a stream that said it is full is not asked again. */
const fullPauseMs = 1_000;

export function createPublisher(options: PublisherOptions): GroupPublisher {
  const { link, config, nowMs, processId, metrics, admission, log } = options;
  const pool = createMemoryPool(config.frameBytesMax);
  const streams = createStreamStates(config.partitions);
  // One entry per project and lane: as many as the registry has projects, some 200 bytes each.
  const projectLanes: Record<Way, Map<string, ProjectLane>> = {
    live: new Map(),
    bulk: new Map(),
    historical: new Map(),
  };
  const departures = new Departures();
  const busy = new Set<ProjectLane>();
  const inFlight = createInFlight({ link, ackTimeoutMs: config.ackTimeoutMs, nowMs, metrics, log, settled, storeFull });
  let lastSharedId = 0;
  let flushScheduled = false;
  let tickTimer: NodeJS.Timeout | undefined;
  let draining = false;
  let drainDeadlineMs = Number.POSITIVE_INFINITY;
  let drained: (() => void) | undefined;
  let waiterFailureLogged = false;

  function projectLaneOf(way: Way, projectId: string): ProjectLane {
    const known = projectLanes[way].get(projectId);
    if (known !== undefined) return known;
    const lane = way === "historical" ? "historical" : "live";
    const partition = partitionOf(projectId, config.partitions);
    const subject = subjectOf(config.subjectPrefix, lane, { partition, projectId });
    const stream = streams.of(lane, partition);
    const created = new ProjectLane(lane, stream, { subject, window: windows[way], background: way !== "live" });
    projectLanes[way].set(projectId, created);
    return created;
  }

  function recordBytesMax(): number {
    return link.messageBytesMax - headerBytesMax;
  }

  function frameBytesMax(): number {
    return Math.min(config.frameBytesMax, recordBytesMax());
  }

  function sharedFrame(lane: Lane, project: Project, bytes: number): FrameSink {
    const projectLane = projectLaneOf(lane, project.id);
    const open = projectLane.open;
    if (open !== undefined) {
      const bytesNeeded = open.length + bytes;
      if (bytesNeeded <= open.buffer.length) return open;
      if (bytesNeeded <= frameBytesMax() || open.length === 0) {
        grow(open, bytesNeeded);
        return open;
      }
      seal(projectLane, open);
    }
    projectLane.open = new Frame(projectLane, pool.take(bytes));
    return projectLane.open;
  }

  function grow(frame: Frame, bytes: number): void {
    const { memory } = frame;
    frame.moveTo(pool.take(bytes));
    pool.give(memory);
  }

  function seal(projectLane: ProjectLane, frame: Frame): void {
    projectLane.open = undefined;
    projectLane.sealed.push(frame);
  }

  function join(sink: FrameSink, waiter: FrameWaiter, deadlineMs: number): void {
    const frame = frameOf(sink);
    if (frame.length === 0) throw new Error("join frame: no line was appended");
    addWaiter(frame, waiter, deadlineMs);
  }

  function submit(sink: FrameSink, messageId: string, waiter: FrameWaiter, deadlineMs: number): void {
    const frame = frameOf(sink);
    if (frame.length === 0 || messageId === "" || messageId.length > messageIdLengthMax) {
      throw new Error(`submit frame: ${frame.length} bytes under message id "${messageId}"`);
    }
    const { projectLane } = frame;
    // What came before is stored before; what comes after gets a frame behind this one.
    if (projectLane.open !== undefined && projectLane.open.length > 0) seal(projectLane, projectLane.open);
    projectLane.sealed.push(frame);
    frame.messageId = messageId;
    addWaiter(frame, waiter, deadlineMs);
  }

  function addWaiter(frame: Frame, waiter: FrameWaiter, deadlineMs: number): void {
    const { projectLane } = frame;
    admission.take(frame.length - frame.admittedBytes);
    frame.admittedBytes = frame.length;
    frame.waiters.push(waiter);
    if (deadlineMs < frame.deadlineMs) frame.deadlineMs = deadlineMs;
    if (!projectLane.busy) {
      projectLane.busy = true;
      busy.add(projectLane);
      tickTimer ??= setTimeout(tick, tickMs);
    }
    markReady(projectLane);
  }

  function markReady(projectLane: ProjectLane): void {
    if (!projectLane.ready) {
      if (projectLane.unacked >= projectLane.window) return;
      projectLane.ready = true;
      departures.push(projectLane);
    }
    scheduleFlush();
  }

  function scheduleFlush(): void {
    if (flushScheduled || !departures.waiting || !link.connected || inFlight.count >= config.framesUnackedMax) return;
    flushScheduled = true;
    setImmediate(flush);
  }

  /** Sends one frame of each lane that waits, in turn, until a window is full. */
  function flush(): void {
    flushScheduled = false;
    const now = nowMs();
    while (link.connected && inFlight.count < config.framesUnackedMax) {
      const projectLane = departures.next();
      if (projectLane === undefined) return;
      projectLane.ready = false;
      const frame = nextFrame(projectLane);
      if (frame === undefined) {
        restIfIdle(projectLane);
        continue;
      }
      if (now < projectLane.stream.fullUntilMs) {
        settle(frame, "refused", "store_full");
      } else {
        projectLane.unacked++;
        departures.left(frame);
        inFlight.send(frame, now);
      }
      if (hasFrame(projectLane)) markReady(projectLane);
    }
  }

  function nextFrame(projectLane: ProjectLane): Frame | undefined {
    const { sealed, open } = projectLane;
    for (let frame = sealed.shift(); frame !== undefined; frame = sealed.shift()) {
      // Lines that nobody joined are of a request that failed half-way: nobody was promised anything.
      if (frame.waiters.length > 0) return named(frame);
      giveBack(frame);
    }
    if (open === undefined || open.waiters.length === 0) return undefined;
    projectLane.open = undefined;
    return named(open);
  }

  function named(frame: Frame): Frame {
    if (frame.messageId === "") frame.messageId = `${processId}-${(++lastSharedId).toString(36)}`;
    return frame;
  }

  function settled(frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    frame.projectLane.unacked--;
    departures.settled(frame);
    settle(frame, outcome, code);
  }

  function settle(frame: Frame, outcome: FrameOutcome, code: ErrorCode | undefined): void {
    const { projectLane } = frame;
    admission.release(frame.admittedBytes);
    // The client sends from the frame's memory. An acknowledgement says that all of it has left; a frame that was sent again, or never
    // answered, may still be on its way, so its memory is not used again.
    if (frame.sends === 0 || (frame.sends === 1 && code === undefined)) giveBack(frame);
    else frame.letGo();
    if (hasFrame(projectLane)) markReady(projectLane);
    else scheduleFlush();
    restIfIdle(projectLane);
    for (const waiter of frame.waiters) {
      try {
        waiter.frameSettled(outcome, code);
      } catch (error) {
        if (!waiterFailureLogged) log.error({ err: error }, "a waiter threw when its frame settled");
        waiterFailureLogged = true;
      }
    }
  }

  function giveBack(frame: Frame): void {
    pool.give(frame.memory);
    frame.letGo();
  }

  function restIfIdle(projectLane: ProjectLane): void {
    if (!projectLane.busy || projectLane.unacked > 0 || hasFrame(projectLane)) return;
    projectLane.busy = false;
    busy.delete(projectLane);
    if (busy.size === 0) drained?.();
  }

  function storeFull(frame: Frame, wholeServer: boolean): void {
    const fullUntilMs = nowMs() + fullPauseMs;
    frame.projectLane.stream.fullUntilMs = fullUntilMs;
    if (wholeServer) streams.allFullUntil(fullUntilMs);
  }

  function tick(): void {
    tickTimer = undefined;
    const now = nowMs();
    inFlight.tick(now);
    for (const projectLane of busy) expireWaiting(projectLane, now);
    if (now >= drainDeadlineMs) abandon();
    if (busy.size > 0) tickTimer ??= setTimeout(tick, tickMs);
  }

  /** Frames that never left by their deadline. */
  function expireWaiting(projectLane: ProjectLane, now: number): void {
    if (projectLane.sealed.length > 0) {
      for (const frame of projectLane.sealed.take((waiting) => waiting.deadlineMs <= now)) {
        settle(frame, "refused", "timeout");
      }
    }
    const { open } = projectLane;
    if (open === undefined || open.deadlineMs > now) return;
    projectLane.open = undefined;
    settle(open, "refused", "timeout");
  }

  function abandon(): void {
    inFlight.abandon();
    for (const projectLane of busy) {
      for (let frame = nextFrame(projectLane); frame !== undefined; frame = nextFrame(projectLane)) {
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
      return streams.everyFull(nowMs()) ? "store_full" : undefined;
    },
    sharedFrame,
    join,
    ownFrame(lane, project, bytes) {
      return new Frame(projectLaneOf(lane === "live" ? "bulk" : lane, project.id), pool.take(bytes));
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

function frameOf(sink: FrameSink): Frame {
  if (!(sink instanceof Frame)) throw new Error("use frame: it is not one of this publisher's");
  return sink;
}

function hasFrame(projectLane: ProjectLane): boolean {
  return projectLane.sealed.length > 0 || (projectLane.open !== undefined && projectLane.open.waiters.length > 0);
}
