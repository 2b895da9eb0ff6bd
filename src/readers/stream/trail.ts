// The latest messages that were read. They identify an older copy of a stream. An entry without an
// id at the end means that losses up to its sequence were reported and must not be reported again.

export interface TrailEntry {
  readonly sequence: number;
  /** `Nats-Msg-Id` of the frame, or empty: see above. */
  readonly messageId: string;
  /** By the server's clock, not the gateway's. */
  readonly storedAtMs: number;
}

export type Trail = readonly TrailEntry[];

export const trailLength = 1_000;

/**
 * May change and return the given array. A replacement before the stream's first message is not
 * added, because it cannot be compared.
 */
export function trailWith(trail: TrailEntry[], { sequence, messageId, storedAtMs }: TrailEntry) {
  if (sequence <= (trail.at(-1)?.sequence ?? 0)) return trail;
  trail.push({ sequence, messageId, storedAtMs });
  return trail.length > 2 * trailLength ? trail.slice(-trailLength) : trail;
}

export function trailReportedTo(trail: Trail, sequence: number): Trail {
  return [...trail, { sequence, messageId: "", storedAtMs: trail.at(-1)?.storedAtMs ?? 0 }];
}

/** Returns the sequence up to which losses after the position were reported; 0 if none were. */
export function reportedTo(position: { readonly sequence: number; readonly trail: Trail }): number {
  const last = position.trail.at(-1);
  return last?.messageId === "" && last.sequence > position.sequence ? last.sequence : 0;
}

export function messagesIn(trail: Trail): Trail {
  return trail.filter(({ messageId }) => messageId !== "");
}
