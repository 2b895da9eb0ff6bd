// The interface between the reader of frames and the code that counts and applies its lines.

import type { StoredFrame } from "../../stream/frame.ts";
import type { EventEffect, LinePlace, Rejection, Stamp, UsageClass } from "../types.ts";

/** A stored line. One object is filled again for each line, so visitors must not retain it. */
export interface StoredLine {
  readonly frame: StoredFrame;
  /** Index of the line in the frame, from 0. */
  readonly line: number;
  readonly projectId: string;
  /** The high half of a hash over project, uuid, name and distinct id, as a signed word. */
  readonly uuidHashHigh: number;
  readonly uuidHashLow: number;
  readonly receivedAtMs: number;
  /** The event's time, limited to `receivedAtMs`. */
  readonly timeMs: number;
  readonly usageClass: UsageClass;
  /** Also set if the event creates no person. */
  readonly distinctId: string;
  /** The high half of a hash over the distinct id, as a signed word. */
  readonly idHashHigh: number;
  readonly idHashLow: number;
  /** Whether the event creates a person for a distinct id that has no person. */
  readonly hasPerson: boolean;
  /** Whether the event has no effect besides creating or touching a person. */
  readonly isPlain: boolean;
  /** Returns a new object. */
  stamp(): Stamp;
  place(): LinePlace;
  /** Returns a new object. Unreadable parts are in `rejections`. */
  effect(): EventEffect;
}

export interface LineVisitor {
  line(line: StoredLine): void;
  /** `line` is the index in the frame. `projectId` is empty if unknown. */
  unreadable(frame: StoredFrame, line: number, projectId: string, rejection: Rejection): void;
}
