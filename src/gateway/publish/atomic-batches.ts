// The atomic batches that were sent but not yet answered. Each batch is sent once. If it is not
// acknowledged, its frames are sent again one by one. They keep their message ids, so that no frame
// is stored twice.

import type { Msg } from "@nats-io/transport-node";
import type { Log } from "../../platform/base/log.ts";
import type { NatsLink } from "../../platform/nats/link.ts";
import { noteStored, type StreamState } from "../../platform/nats/readiness.ts";
import type { AckInbox, LateAcks } from "./ack-inbox.ts";
import type { Frame, FrameQueue } from "./frame.ts";
import { consequences, type PublishMetrics } from "./outcomes.ts";
import { type NoPubAck, type PubAck, readPubAck } from "./pub-ack.ts";

const framesMax = 1_000;
/** The size is limited because the server writes a batch twice and blocks the stream meanwhile. */
const bytesMax = 1_048_576;
/** For a larger frame, a batch does not save time. */
const frameBytesMax = 32_768;

export function fitsBatch({ length }: Frame): boolean {
  return length <= frameBytesMax;
}

export class AtomicBatch {
  readonly frames: Frame[] = [];
  #bytes = 0;
  token = "";
  /** The id of the batch in JetStream. It must differ from the ids of all other batches. */
  id = "";
  retryMonotonicMs = Number.POSITIVE_INFINITY;
  /** This flag is true if the frames were sent again one by one. A late answer still counts. */
  isSplit = false;

  get isFull(): boolean {
    return this.frames.length >= framesMax || this.#bytes > bytesMax - frameBytesMax;
  }

  get stream(): StreamState {
    return this.frames[0]!.queue.stream;
  }

  get departures(): FrameQueue["departures"] {
    return this.frames[0]!.queue.departures;
  }

  add(frame: Frame): void {
    this.frames.push(frame);
    this.#bytes += frame.length;
  }
}

interface BatchesUnderWayOptions {
  readonly link: Pick<NatsLink, "send">;
  readonly processId: string;
  readonly ackTimeoutMs: number;
  readonly monotonicMs: () => number;
  readonly metrics: Pick<PublishMetrics, "ackFailed" | "batchEnded">;
  readonly log: Pick<Log, "warn">;
  readonly inbox: Pick<AckInbox, "replySubject">;
  readonly lateAcks: Pick<LateAcks, "remember">;
  readonly isUnderWay: (frame: Frame) => boolean;
  readonly acknowledge: (frame: Frame, ack: PubAck) => void;
  readonly retryAlone: (frame: Frame, pauseMs: number) => void;
  readonly flushes: {
    wake(departures: AtomicBatch["departures"]): void;
    now(departures: AtomicBatch["departures"]): void;
  };
}

/**
 * The frames may be stored nevertheless. This is possible if the link broke, or if an old server
 * stored only the last frame.
 */
const uncertain = { isRefused: false, pauseMs: 0 };
const firstSend = 1;

export class BatchesUnderWay {
  readonly #options: BatchesUnderWayOptions;
  readonly #batches = new Map<string, AtomicBatch>();

  constructor(options: BatchesUnderWayOptions) {
    this.#options = options;
  }

  /** `token` must differ from the tokens of all other frames and batches. */
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
      log.warn({ err: error }, "atomic batch could not be published");
      this.#fail(batch, uncertain);
    }
  }

  handleReply(token: string, message: Msg): boolean {
    const batch = this.#batches.get(token);
    if (batch === undefined) return false;
    const ack = readPubAck(message, batch.stream);
    if (typeof ack !== "object") this.#notAcknowledged(batch, ack);
    else if (isOf(batch, ack)) this.#acknowledge(batch, ack);
    else {
      // A server older than 2.12 knows no atomic batches, and acknowledges only the last frame.
      this.#options.metrics.ackFailed("malformed");
      this.#fail(batch, uncertain);
    }
    return true;
  }

  tick(monotonicMs: number): void {
    for (const batch of this.#batches.values()) {
      if (monotonicMs >= batch.retryMonotonicMs) this.#unanswered(batch, "timeout");
      if (batch.isSplit && !batch.frames.some(this.#options.isUnderWay)) {
        this.#batches.delete(batch.token);
        this.#options.lateAcks.remember(batch.token, batch.stream);
      }
    }
  }

  /** Splits all batches, because answers that were sent during the disconnection are lost. */
  splitAll(): void {
    for (const batch of this.#batches.values()) this.#unanswered(batch, "disconnected");
  }

  #unanswered(batch: AtomicBatch, why: "timeout" | "disconnected"): void {
    if (batch.isSplit) return;
    this.#options.metrics.ackFailed(why);
    this.#split(batch);
  }

  #acknowledge(batch: AtomicBatch, ack: PubAck): void {
    const { flushes, metrics, monotonicMs } = this.#options;
    const { frames } = batch;
    this.#batches.delete(batch.token);
    noteSequence(batch, ack);
    if (!batch.isSplit) {
      const { departures } = batch;
      departures.batchEnded(true);
      // The next batch is sent first, because answering the requests of this batch takes time.
      // There may be up to a thousand of them.
      flushes.now(departures);
      metrics.batchEnded("stored", frames.length);
    }
    noteStored(batch.stream, monotonicMs());
    // The microtask runs after the NATS client has written the next batch to the socket. So the
    // next batch is sent before these requests are answered. With 1,000 projects, this increases
    // the events per second by 10 %.
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
      "atomic batch not stored: the gateway sends its frames one by one",
    );
    // A single node checks its free space for each message. So it may have stored some of the
    // messages.
    this.#fail(batch, { isRefused: isRefused && why !== "server_full", pauseMs });
  }

  #fail(batch: AtomicBatch, { isRefused, pauseMs }: typeof uncertain): void {
    const { isUnderWay, retryAlone } = this.#options;
    const wasSplit = batch.isSplit;
    if (!wasSplit) this.#split(batch);
    this.#batches.delete(batch.token);
    for (const frame of batch.frames) {
      if (!isUnderWay(frame)) continue;
      if (isRefused) frame.refuse(firstSend);
      if (!wasSplit) retryAlone(frame, pauseMs);
    }
  }

  #split(batch: AtomicBatch): void {
    const { flushes, metrics } = this.#options;
    const { departures } = batch;
    batch.isSplit = true;
    metrics.batchEnded("parted", batch.frames.length);
    departures.batchEnded(false);
    flushes.wake(departures);
  }
}

function firstSequence({ frames }: AtomicBatch, { seq }: PubAck): number {
  return seq - frames.length + 1;
}

/** Must be called before the acknowledgement, because later frames get higher sequences. */
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
