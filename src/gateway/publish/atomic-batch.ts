// A JetStream atomic batch: frames of several projects that the stream stores all or not at all,
// with one fsync and one acknowledgement. State only.

import type { StreamState } from "../../platform/nats/readiness.ts";
import type { Frame, FrameQueue } from "./frame.ts";

/** The default maximum of nats-server. */
const framesMax = 1_000;
/** The server writes a batch twice, and blocks the stream meanwhile. */
const bytesMax = 1_048_576;
/** To write a larger frame takes more time than a batch saves. */
const frameBytesMax = 32_768;

export function fitsBatch({ length }: Frame): boolean {
  return length <= frameBytesMax;
}

export class AtomicBatch {
  readonly frames: Frame[] = [];
  #bytes = 0;
  /** Identifies the batch in its reply subject, like a frame's token. */
  token = "";
  /** Identifies the batch to JetStream. Unique among all batches. */
  id = "";
  retryMonotonicMs = Number.POSITIVE_INFINITY;
  /** Whether the frames were sent again, each alone. A later answer to the batch still counts. */
  isSplit = false;

  /** Whether there may be no room for another frame that fits a batch. */
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
