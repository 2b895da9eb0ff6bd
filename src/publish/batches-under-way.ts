// The atomic batches that were sent, and are not answered. A batch is sent once. Its frames are
// acknowledged together, or else each is sent again alone, under the message id that it has: so it
// does not matter which of them the stream knows already. No frame is ever in a second batch.

import type { Msg } from "@nats-io/transport-node";
import type { Log } from "../base/log.ts";
import type { NatsLink } from "../nats/link.ts";
import { heardFrom } from "../nats/readiness.ts";
import type { AckInbox } from "./ack-inbox.ts";
import type { AtomicBatch } from "./atomic-batch.ts";
import type { Departures } from "./departures.ts";
import type { Frame, FrameQueue } from "./frame.ts";
import type { LateAcks } from "./late-acks.ts";
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
  /** Sends a frame of a batch that was parted again, by itself, after the pause. */
  readonly sendAlone: (frame: Frame, pauseMs: number) => void;
  /** Once for each batch: from now on the next one may leave. */
  readonly ended: (departures: Departures<FrameQueue>, isStored: boolean) => void;
}

/** What follows for the frames of a batch from an answer that does not acknowledge it. */
interface Parting {
  readonly pauseMs: number;
  /** Whether no frame can be stored by the send in the batch. */
  readonly isRefused: boolean;
}

const refusedPauseMs = 100;
const inFlightPauseMs = 250;
const refusedNow: Parting = { pauseMs: 0, isRefused: true };
const refusedForNow: Parting = { pauseMs: refusedPauseMs, isRefused: true };
const partings: Readonly<Record<Exclude<NoPubAck, "foreign" | "malformed">, Parting>> = {
  batch_refused: refusedNow,
  // What all of the batch has no room for, some frames may have; and each says itself that it is
  // too large.
  stream_full: refusedNow,
  too_large: refusedNow,
  no_responders: refusedForNow,
  refused: refusedForNow,
  // A single node checks these limits again at each message that it stores.
  server_full: { pauseMs: 0, isRefused: false },
  failed: { pauseMs: refusedPauseMs, isRefused: false },
  in_flight: { pauseMs: inFlightPauseMs, isRefused: false },
};
/**
 * The commit was acknowledged as a message by itself, as a server older than 2.12 does: it may be
 * stored, and so may each of the others.
 */
const notAsOne: Parting = { pauseMs: 0, isRefused: false };
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
      this.#fail(batch, notAsOne);
    }
  }

  /** Hears a reply. Returns false where the token is not that of a batch. */
  hear(token: string, message: Msg): boolean {
    const batch = this.#batches.get(token);
    if (batch === undefined) return false;
    const ack = readPubAck(message, batch.stream);
    if (ack === "foreign" || ack === "malformed") this.#options.metrics.ackFailed(ack);
    else if (typeof ack !== "object") this.#refused(batch, ack);
    else if (isOf(batch, ack)) this.#acknowledge(batch, ack);
    else this.#fail(batch, notAsOne);
    return true;
  }

  /**
   * Parts the batches that were not answered in time, so that their frames are sent again, and
   * forgets those of which no frame is under way.
   */
  tick(monotonicMs: number): void {
    for (const batch of this.#batches.values()) {
      if (!batch.isParted && monotonicMs >= batch.retryMonotonicMs) this.#part(batch);
      if (batch.isParted && !batch.frames.some(this.#options.isUnderWay)) {
        this.#batches.delete(batch.token);
        this.#options.lateAcks.remember(batch.token, batch.stream);
      }
    }
  }

  /** Parts all batches: the answers that came while disconnected were not heard. */
  partAll(): void {
    for (const batch of this.#batches.values()) if (!batch.isParted) this.#part(batch);
  }

  #acknowledge(batch: AtomicBatch, ack: PubAck): void {
    const { ended, metrics, monotonicMs } = this.#options;
    const { frames } = batch;
    this.#batches.delete(batch.token);
    if (!batch.isParted) {
      ended(departuresOf(batch), true);
      metrics.batchEnded("stored", frames.length);
    }
    heardFrom(batch.stream, monotonicMs());
    // The client hands what leaves to the socket in a microtask too. So the next batch is on its
    // way while this one's requests are answered: at 1,000 projects a tenth more events a second.
    queueMicrotask(() => this.#acknowledgeFrames(batch, ack));
  }

  #acknowledgeFrames({ frames }: AtomicBatch, { stream, seq }: PubAck): void {
    const { acknowledge, isUnderWay } = this.#options;
    const first = seq - frames.length + 1;
    for (const [at, frame] of frames.entries())
      if (isUnderWay(frame)) acknowledge(frame, { stream, seq: first + at });
  }

  #refused(batch: AtomicBatch, why: Exclude<NoPubAck, "foreign" | "malformed">): void {
    const { metrics, log } = this.#options;
    metrics.ackFailed(why === "stream_full" || why === "server_full" ? "store_full" : causeOf(why));
    log.warn(
      { stream: batch.stream.name, frames: batch.frames.length, reason: why },
      "an atomic batch was not stored as one: its frames are sent one by one",
    );
    this.#fail(batch, partings[why]);
  }

  #fail(batch: AtomicBatch, { pauseMs, isRefused }: Parting): void {
    const { isUnderWay, sendAlone } = this.#options;
    const wasParted = batch.isParted;
    if (!wasParted) this.#part(batch);
    this.#batches.delete(batch.token);
    for (const frame of batch.frames) {
      if (!isUnderWay(frame)) continue;
      if (isRefused) frame.refuse(firstSend);
      if (!wasParted) sendAlone(frame, pauseMs);
    }
  }

  /** From now on its frames count as sent alone. */
  #part(batch: AtomicBatch): void {
    const { ended, isUnderWay, metrics } = this.#options;
    const departures = departuresOf(batch);
    batch.isParted = true;
    metrics.batchEnded("parted", batch.frames.length);
    for (const frame of batch.frames) if (isUnderWay(frame)) departures.parted(frame);
    ended(departures, false);
  }
}

function causeOf(why: Exclude<NoPubAck, "foreign" | "malformed" | "stream_full" | "server_full">) {
  return why === "too_large" || why === "failed" ? "refused" : why;
}

function departuresOf({ frames }: AtomicBatch): Departures<FrameQueue> {
  return frames[0]!.queue.departures;
}

function isOf({ id, frames }: AtomicBatch, { batch, count, duplicate }: PubAck): boolean {
  return batch === id && count === frames.length && duplicate !== true;
}

function batchHeaders(id: string, sequence: number, isLast: boolean): string {
  const commit = isLast ? "Nats-Batch-Commit: 1\r\n" : "";
  return `Nats-Batch-Id: ${id}\r\nNats-Batch-Sequence: ${sequence}\r\n${commit}`;
}
