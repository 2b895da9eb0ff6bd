// The most recent messages that were read of a stream, which identify an older copy of it. If
// reading started before the stream's first message, because erased messages have replacements
// there, the trail also ends with an entry without an id: losses up to its sequence were reported,
// and no later start, in another process too, reports them again.

/** Identifies a frame that was read. */
export interface TrailEntry {
  readonly sequence: number;
  /** Its `Nats-Msg-Id`; "": not a message, but the sequence up to which losses were reported. */
  readonly messageId: string;
  /** When the stream stored it, by the server's clock; `received_at` is by a gateway's clock. */
  readonly storedAtMs: number;
}

/** In the order of their sequences. */
export type Trail = readonly TrailEntry[];

/** Number of messages that are remembered. */
export const trailLength = 1_000;

/**
 * Adds a message that was read; may return the same array. A replacement before the stream's first
 * message cannot be compared with any stored message, so it is not added.
 */
export function trailWith(trail: TrailEntry[], { sequence, messageId, storedAtMs }: TrailEntry) {
  if (sequence <= (trail.at(-1)?.sequence ?? 0)) return trail;
  trail.push({ sequence, messageId, storedAtMs });
  return trail.length > 2 * trailLength ? trail.slice(-trailLength) : trail;
}

/** The trail of a position, with losses reported up to `sequence`. */
export function trailReportedTo(trail: Trail, sequence: number): Trail {
  return [...trail, { sequence, messageId: "", storedAtMs: trail.at(-1)?.storedAtMs ?? 0 }];
}

/** The sequence up to which losses after the position were reported; 0: none. */
export function reportedTo(position: { readonly sequence: number; readonly trail: Trail }): number {
  const last = position.trail.at(-1);
  return last?.messageId === "" && last.sequence > position.sequence ? last.sequence : 0;
}

/** The entries that are messages. */
export function messagesIn(trail: Trail): Trail {
  return trail.filter(({ messageId }) => messageId !== "");
}
