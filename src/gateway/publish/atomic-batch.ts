// Frames of several projects that are sent as one JetStream atomic batch: it stores all of them or
// none, with one fsync and one acknowledgement. State only.

import type { StreamState } from "../../platform/nats/readiness.ts";
import type { Frame, FrameQueue } from "./frame.ts";

/** The default maximum number of messages that nats-server accepts in one batch. */
const framesMax = 1_000;
/** The server writes the content of a batch twice, and blocks the stream meanwhile. */
const bytesMax = 1_048_576;
/** A larger frame is sent alone, because writing it costs more than a batch saves. */
const frameBytesMax = 32_768;

/** Returns whether the frame may be sent in a batch. */
export function fitsBatch({ length }: Frame): boolean {
  return length <= frameBytesMax;
}

export class AtomicBatch {
  readonly frames: Frame[] = [];
  #bytes = 0;
  /** Identifies the batch in its reply subject, like a frame's token. */
  token = "";
  /** Identifies the batch to JetStream. Unique over all batches. */
  id = "";
  retryMonotonicMs = Number.POSITIVE_INFINITY;
  /**
   * Its frames were sent again, each alone, before the batch was answered. An answer still counts.
   */
  isSplit = false;

  /** Whether there may be no room for another frame that fits a batch. */
  get isFull(): boolean {
    return this.frames.length >= framesMax || this.#bytes > bytesMax - frameBytesMax;
  }

  /** The target stream of all the frames. */
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
