// What an acknowledgement says of a stream whose sequences do not rise.

import type { Log } from "../../platform/base/log.ts";
import { doubt } from "../../platform/nats/readiness.ts";
import type { Frame } from "./frame.ts";

interface Noticed {
  readonly log: Pick<Log, "error">;
  readonly monotonicMs: number;
}

/**
 * Puts the frame's stream in doubt. The frame was sent after an acknowledgement of a sequence that
 * is not below the frame's own. So the message of that acknowledgement is gone. A stream that gives
 * a sequence twice may keep neither message: its nats-server may have a full disk, or another
 * stream may have taken its place.
 */
export function noteWentBack(
  { sequenceBefore, queue, firstSentMonotonicMs }: Frame,
  sequence: number,
  { log, monotonicMs }: Noticed,
): void {
  const { stream } = queue;
  if (firstSentMonotonicMs <= stream.wentBackMonotonicMs) return;
  log.error(
    { stream: stream.name, acknowledged: sequenceBefore, now: sequence },
    "a stream gave a sequence for the second time: its events are refused until its leader was asked",
  );
  doubt(stream, { from: sequenceBefore, to: sequence }, monotonicMs);
}
