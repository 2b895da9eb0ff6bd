// Frames of several projects that leave together, as one atomic batch of JetStream: it stores all
// of them or none, with one fsync, and one acknowledgement stands for all. State only.

import type { StreamState } from "../../platform/nats/readiness.ts";
import type { Frame, FrameQueue } from "./frame.ts";

/** The most that nats-server takes in one batch, unless it is set otherwise. */
const framesMax = 1_000;
/** The server writes what is in a batch twice, and nothing else of the stream meanwhile. */
const bytesMax = 1_048_576;
/** A larger frame leaves alone: what it takes to write it is more than what a batch saves. */
const frameBytesMax = 32_768;

/** Whether the frame may leave in a batch. */
export function fitsBatch({ length }: Frame): boolean {
  return length <= frameBytesMax;
}

export class AtomicBatch {
  readonly frames: Frame[] = [];
  #bytes = 0;
  /** Names the batch in its reply subject, as a frame's token does the frame. */
  token = "";
  /** Names the batch to JetStream. No other batch ever has this id. */
  id = "";
  retryMonotonicMs = Number.POSITIVE_INFINITY;
  /** Its frames were sent again, each alone, before it was answered. An answer still counts. */
  isParted = false;

  /** Whether there might be no room for another frame that fits a batch. */
  get isFull(): boolean {
    return this.frames.length >= framesMax || this.#bytes > bytesMax - frameBytesMax;
  }

  /** The stream that all the frames are meant for. */
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
