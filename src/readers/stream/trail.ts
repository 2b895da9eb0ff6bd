// The newest messages that were read of a stream, by which an older copy of it can be told. Where
// the reading began before the stream's first message, because something stands in the places of
// erased ones, the trail also says up to where what is gone was told of: whoever reads on, in
// another process too, must not take it for lost once more.

/** What a frame was, so that an older copy of its stream can be told. */
export interface TrailEntry {
  readonly sequence: number;
  /** Its `Nats-Msg-Id`; "": this is no message, and what is gone up to here was told of. */
  readonly messageId: string;
  /** When the stream stored it, by the server's clock; `received_at` is by a gateway's. */
  readonly storedAtMs: number;
}

/** In the order of their sequences. */
export type Trail = readonly TrailEntry[];

/** How many messages are remembered, so that an older copy of the stream can be told. */
export const trailLength = 1_000;

/**
 * The trail with a message that was read, which may be the same array. One that stood before the
 * stream's first message cannot be compared with any that is there, and is left out.
 */
export function trailWith(trail: TrailEntry[], { sequence, messageId, storedAtMs }: TrailEntry) {
  if (sequence <= (trail.at(-1)?.sequence ?? 0)) return trail;
  trail.push({ sequence, messageId, storedAtMs });
  return trail.length > 2 * trailLength ? trail.slice(-trailLength) : trail;
}

/** The trail of a place from which on all that is gone up to `sequence` was told of. */
export function trailToldTo(trail: Trail, sequence: number): Trail {
  return [...trail, { sequence, messageId: "", storedAtMs: trail.at(-1)?.storedAtMs ?? 0 }];
}

/** Up to where what is gone behind the place was told of; 0: nothing was. */
export function toldTo(place: { readonly sequence: number; readonly trail: Trail }): number {
  const last = place.trail.at(-1);
  return last?.messageId === "" && last.sequence > place.sequence ? last.sequence : 0;
}

/** Those that are messages. */
export function messagesIn(trail: Trail): Trail {
  return trail.filter(({ messageId }) => messageId !== "");
}
