// The most recent messages that were read from a stream. They identify an older copy of it. If
// reading started before the stream's first message because erased messages have replacements, the
// trail ends with an entry without an id. Losses up to the sequence of this entry were reported,
// and no later start reports them again, even in another process.

/** A frame that was read. */
export interface TrailEntry {
  readonly sequence: number;
  /**
   * `Nats-Msg-Id` of the frame. If empty, the entry is not a message: losses up to its sequence
   * were reported.
   */
  readonly messageId: string;
  /**
   * Time in ms when the stream stored the frame, by the server's clock. `received_at` is by a
   * gateway's clock.
   */
  readonly storedAtMs: number;
}

/** Entries in the order of their sequences. */
export type Trail = readonly TrailEntry[];

/** Maximum number of messages in a stored trail. */
export const trailLength = 1_000;

/**
 * Returns the trail with a message that was read. May change and return the given array. A
 * replacement before the stream's first message is not added, because it cannot be compared with
 * any stored message.
 */
export function trailWith(trail: TrailEntry[], { sequence, messageId, storedAtMs }: TrailEntry) {
  if (sequence <= (trail.at(-1)?.sequence ?? 0)) return trail;
  trail.push({ sequence, messageId, storedAtMs });
  return trail.length > 2 * trailLength ? trail.slice(-trailLength) : trail;
}

/** Returns the trail after losses up to `sequence` were reported. */
export function trailReportedTo(trail: Trail, sequence: number): Trail {
  return [...trail, { sequence, messageId: "", storedAtMs: trail.at(-1)?.storedAtMs ?? 0 }];
}

/**
 * Returns the sequence up to which losses after the position were reported; 0 if no losses were.
 */
export function reportedTo(position: { readonly sequence: number; readonly trail: Trail }): number {
  const last = position.trail.at(-1);
  return last?.messageId === "" && last.sequence > position.sequence ? last.sequence : 0;
}

/** Returns the entries that are messages. */
export function messagesIn(trail: Trail): Trail {
  return trail.filter(({ messageId }) => messageId !== "");
}
