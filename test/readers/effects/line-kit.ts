import { IdHash } from "../../../src/readers/effects/lines/hashes.ts";
import type { StoredLine } from "../../../src/readers/effects/lines/line.ts";
import type { StoredFrame } from "../../../src/readers/stream/frame.ts";
import { frameOf } from "../../kit/effect-lines.ts";

export function storedFrame(wanted: Partial<StoredFrame> = {}): StoredFrame {
  return frameOf("", { storedAtMs: Number.MAX_SAFE_INTEGER, ...wanted });
}

const idHash = new IdHash();

export function idHashOf(distinctId: string): Pick<StoredLine, "idHashHigh" | "idHashLow"> {
  idHash.set(distinctId);
  return { idHashHigh: idHash.high, idHashLow: idHash.low };
}

export function storedLine(wanted: Partial<StoredLine> = {}): StoredLine {
  return {
    frame: storedFrame(),
    line: 0,
    projectId: "p",
    uuidHashHigh: 1,
    uuidHashLow: 2,
    receivedAtMs: 0,
    timeMs: 0,
    usageClass: "identified",
    distinctId: "someone",
    ...idHashOf(wanted.distinctId ?? "someone"),
    hasPerson: true,
    isPlain: true,
    stamp: () => {
      throw new Error("counting does not read when a line was written");
    },
    place: () => {
      throw new Error("counting does not read the position of a line");
    },
    effect: () => {
      throw new Error("counting does not read the effect of a line");
    },
    ...wanted,
  };
}
