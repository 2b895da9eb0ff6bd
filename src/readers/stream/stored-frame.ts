// A frame as it lies in its stream, as whoever reads it is given it. Types alone.

import type { Lane } from "../../platform/base/lane.ts";

/** A message of a stream, as it was stored. */
export interface StoredFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly epoch: number;
  readonly sequence: number;
  /** The project that its subject names; undefined where it may hold several projects' lines. */
  readonly projectId: string | undefined;
  readonly messageId: string;
  /** When the stream stored it. */
  readonly storedAtMs: number;
  /** NDJSON. */
  readonly data: Uint8Array;
}
