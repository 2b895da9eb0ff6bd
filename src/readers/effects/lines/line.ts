// The interface through which the reader of frames passes a stored line to the parts that count and
// apply it. Types only.

import type { StoredFrame } from "../../stream/frame.ts";
import type { EventEffect, LinePlace, Rejection, Stamp, UsageClass } from "../types.ts";

/** One object that is filled again for each line: do not store it. */
export interface StoredLine {
  readonly frame: StoredFrame;
  /** Index in the frame. */
  readonly line: number;
  readonly projectId: string;
  /** 64 bits of a hash over project, uuid, name and distinct id, as two signed 32-bit words. */
  readonly uuidHashHigh: number;
  readonly uuidHashLow: number;
  readonly receivedAtMs: number;
  /** The event's time, but never later than `receivedAtMs`. */
  readonly timeMs: number;
  readonly usageClass: UsageClass;
  /** The event's distinct id, even if the event makes no person. */
  readonly distinctId: string;
  /** 64 bits of a hash over the distinct id, as two signed 32-bit words. */
  readonly idHashHigh: number;
  readonly idHashLow: number;
  /** Whether the event makes a person for a distinct id without one. */
  readonly hasPerson: boolean;
  /** The event has no other effect. Then `effect` need not be called. */
  readonly isPlain: boolean;
  /** The stamp of its writes, as a new object. */
  stamp(): Stamp;
  place(): LinePlace;
  /** The effect of the event, as a new object. Unreadable parts are in `rejections`. */
  effect(): EventEffect;
}

export interface LineVisitor {
  line(line: StoredLine): void;
  /** Called for an unreadable line. `line`: its index; `projectId`: undefined if unknown. */
  unreadable(frame: StoredFrame, line: number, projectId: string, rejection: Rejection): void;
}
