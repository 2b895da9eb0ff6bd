// A stored line as the reader of frames shows it to the parts that count and apply. Types alone.

import type { StoredFrame } from "../../stream/frame.ts";
import type { EventEffect, LinePlace, Rejection, Stamp, UsageClass } from "../types.ts";

/** One object, filled anew for each line: nothing may keep it. */
export interface StoredLine {
  readonly frame: StoredFrame;
  /** Index in the frame. */
  readonly line: number;
  readonly projectId: string;
  /** 64 bits of a hash over project, uuid, name and distinct id, as two signed words of 32 bits. */
  readonly uuidHashHigh: number;
  readonly uuidHashLow: number;
  readonly receivedAtMs: number;
  /** The event's time, but never later than `receivedAtMs`. */
  readonly timeMs: number;
  readonly usageClass: UsageClass;
  /** Whose event it is, also where it makes no person. */
  readonly distinctId: string;
  /** 64 bits of a hash over the distinct id, as two signed words of 32 bits. */
  readonly idHashHigh: number;
  readonly idHashLow: number;
  /** Whether it makes a person for its distinct id, if there is none. */
  readonly hasPerson: boolean;
  /** It does nothing but that. Then `effect` need not be asked for. */
  readonly isPlain: boolean;
  /** When it writes, and where it stands: objects of their own. */
  stamp(): Stamp;
  place(): LinePlace;
  /** What it does, as an object of its own. What cannot be read is in `rejections`. */
  effect(): EventEffect;
}

export interface LineVisitor {
  line(line: StoredLine): void;
  /** A line that cannot be read at all. `line`: its index; `projectId`: where it can be told. */
  unreadable(frame: StoredFrame, line: number, projectId: string, rejection: Rejection): void;
}
