// The atomic batches that were sent, and are not answered. A batch is sent once. Its frames are
// acknowledged together, or else each is sent again alone, under the message id that it has: so it
// does not matter which of them the stream knows already. No frame is ever in a second batch.

import type { Msg } from "@nats-io/transport-node";
import type { Log } from "../../platform/base/log.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import { heardFrom } from "../../platform/nats/readiness.ts";
import type { AckInbox } from "./ack-inbox.ts";
import type { AtomicBatch } from "./atomic-batch.ts";
import type { Flushes } from "./flushes.ts";
import type { Frame } from "./frame.ts";
import type { LateAcks } from "./late-acks.ts";
import { consequences } from "./outcomes.ts";
import { type NoPubAck, type PubAck, readPubAck } from "./pub-ack.ts";
import type { PublishMetrics } from "./publish-metrics.ts";

interface BatchesUnderWayOptions {
  readonly link: Pick<NatsLink, "send">;
  /** No other process has it: the batches' ids begin with it. */
  readonly processId: string;
  readonly ackTimeoutMs: number;
  readonly monotonicMs: () => number;
  readonly metrics: Pick<PublishMetrics, "ackFailed" | "batchEnded">;
  readonly log: Pick<Log, "warn">;
  readonly inbox: Pick<AckInbox, "replySubject">;
  readonly lateAcks: Pick<LateAcks, "remember">;
  /** Whether the frame is sent and not settled. */
  readonly isUnderWay: (frame: Frame) => boolean;
  /** Called for each frame that is under way when its batch is acknowledged. */
  readonly acknowledge: (frame: Frame, ack: PubAck) => void;
  /** Lets a frame of a batch that was parted leave again, by itself, after the pause. */
  readonly leaveAgain: (frame: Frame, pauseMs: number) => void;
  readonly flushes: Pick<Flushes, "wake" | "now">;
}

/**
 * Each frame of the batch may be stored or not: the link broke while it was sent, or the server has
 * acknowledged its last frame as a message by itself, as one older than 2.12 does.
 */
const unknownOfEach = { isRefused: false, pauseMs: 0 };
/** A frame is in a batch at its first send only. */
const firstSend = 1;

export class BatchesUnderWay {
  readonly #options: BatchesUnderWayOptions;
  readonly #batches = new Map<string, AtomicBatch>();

  constructor(options: BatchesUnderWayOptions) {
    this.#options = options;
  }

  /** Sends the batch, whose token no frame and no other batch has. */
  send(batch: AtomicBatch, token: string): void {
    const { link, processId, inbox, ackTimeoutMs, monotonicMs, log } = this.#options;
    const { frames } = batch;
    batch.token = token;
    batch.id = `${processId}-${token}`;
    batch.retryMonotonicMs = monotonicMs() + ackTimeoutMs;
    this.#batches.set(token, batch);
    try {
      for (const [at, frame] of frames.entries()) {
        const isLast = at === frames.length - 1;
        const reply = isLast ? inbox.replySubject(token, firstSend) : "";
        frame.retryMonotonicMs = batch.retryMonotonicMs;
        link.send(frame.message(reply, batchHeaders(batch.id, at + 1, isLast)));
        frame.sends++;
      }
    } catch (error) {
      log.warn({ err: error }, "an atomic batch cannot be published");
      this.#fail(batch, unknownOfEach);
    }
  }

  /** Hears a reply. Returns false where the token is not that of a batch. */
  hear(token: string, message: Msg): boolean {
    const batch = this.#batches.get(token);
    if (batch === undefined) return false;
    const ack = readPubAck(message, batch.stream);
    if (typeof ack !== "object") this.#notAcknowledged(batch, ack);
    else if (isOf(batch, ack)) this.#acknowledge(batch, ack);
    else {
      // A server before 2.12 answers so, to the last frame alone.
      this.#options.metrics.ackFailed("malformed");
      this.#fail(batch, unknownOfEach);
    }
    return true;
  }

  /**
   * Parts the batches that were not answered in time, whose frames are then due to be sent again,
   * and forgets those of which no frame is under way.
   */
  tick(monotonicMs: number): void {
    for (const batch of this.#batches.values()) {
      if (monotonicMs >= batch.retryMonotonicMs) this.#unanswered(batch, "timeout");
      if (batch.isParted && !batch.frames.some(this.#options.isUnderWay)) {
        this.#batches.delete(batch.token);
        this.#options.lateAcks.remember(batch.token, batch.stream);
      }
    }
  }

  /** Parts all batches: the answers that came while disconnected were not heard. */
  partAll(): void {
    for (const batch of this.#batches.values()) this.#unanswered(batch, "disconnected");
  }

  #unanswered(batch: AtomicBatch, why: "timeout" | "disconnected"): void {
    if (batch.isParted) return;
    this.#options.metrics.ackFailed(why);
    this.#part(batch);
  }

  #acknowledge(batch: AtomicBatch, ack: PubAck): void {
    const { flushes, metrics, monotonicMs } = this.#options;
    const { frames } = batch;
    this.#batches.delete(batch.token);
    noteSequence(batch, ack);
    if (!batch.isParted) {
      const { departures } = batch;
      departures.batchEnded(true);
      // An acknowledgement means up to a thousand answers: the next batch leaves before those.
      flushes.now(departures);
      metrics.batchEnded("stored", frames.length);
    }
    heardFrom(batch.stream, monotonicMs());
    // The client hands what leaves to the socket in a microtask too. So the next batch is on its
    // way while this one's requests are answered: at 1,000 projects a tenth more events a second.
    queueMicrotask(() => this.#acknowledgeFrames(batch, ack));
  }

  #acknowledgeFrames(batch: AtomicBatch, ack: PubAck): void {
    const { acknowledge, isUnderWay } = this.#options;
    const { frames } = batch;
    const { stream } = ack;
    const first = firstSequence(batch, ack);
    for (const [at, frame] of frames.entries())
      if (isUnderWay(frame)) acknowledge(frame, { stream, seq: first + at });
  }

  #notAcknowledged(batch: AtomicBatch, why: NoPubAck): void {
    const { metrics, log } = this.#options;
    const { cause, isRefused, pauseMs } = consequences[why];
    metrics.ackFailed(cause);
    if (pauseMs === Number.POSITIVE_INFINITY) return;
    log.warn(
      { stream: batch.stream.name, frames: batch.frames.length, reason: why },
      "an atomic batch was not stored as one: its frames are sent one by one",
    );
    // A single node checks what it has room for again at each message that it stores.
    this.#fail(batch, { isRefused: isRefused && why !== "server_full", pauseMs });
  }

  #fail(batch: AtomicBatch, { isRefused, pauseMs }: typeof unknownOfEach): void {
    const { isUnderWay, leaveAgain } = this.#options;
    const wasParted = batch.isParted;
    if (!wasParted) this.#part(batch);
    this.#batches.delete(batch.token);
    for (const frame of batch.frames) {
      if (!isUnderWay(frame)) continue;
      if (isRefused) frame.refuse(firstSend);
      if (!wasParted) leaveAgain(frame, pauseMs);
    }
  }

  /** From now on each of its frames is by itself, and the next batch may leave. */
  #part(batch: AtomicBatch): void {
    const { flushes, metrics } = this.#options;
    const { departures } = batch;
    batch.isParted = true;
    metrics.batchEnded("parted", batch.frames.length);
    departures.batchEnded(false);
    flushes.wake(departures);
  }
}

function firstSequence({ frames }: AtomicBatch, { seq }: PubAck): number {
  return seq - frames.length + 1;
}

/**
 * What leaves now is sent after this acknowledgement, and that of each frame counts only later. Not
 * where a frame's will show that the stream went back, or does not count.
 */
function noteSequence(batch: AtomicBatch, ack: PubAck): void {
  const { stream, frames } = batch;
  if (stream.refusal !== undefined || firstSequence(batch, ack) <= frames[0]!.sequenceBefore)
    return;
  stream.sequence = Math.max(stream.sequence, ack.seq);
}

function isOf({ id, frames }: AtomicBatch, { batch, count, duplicate }: PubAck): boolean {
  return batch === id && count === frames.length && duplicate !== true;
}

function batchHeaders(id: string, sequence: number, isLast: boolean): string {
  const commit = isLast ? "Nats-Batch-Commit: 1\r\n" : "";
  return `Nats-Batch-Id: ${id}\r\nNats-Batch-Sequence: ${sequence}\r\n${commit}`;
}
