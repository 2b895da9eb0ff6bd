// The order of history among the bodies that are not placed in the turn in which they came: who has to wait for whom. Whose body it
// is may be known when it arrives, or when it has been scanned. Knows nothing else of what is in a body.

import type { BodyHint, Lane } from "../types.ts";

/** A body's place among those that are being worked on. */
export interface Arrival {
  /** Both undefined while nobody knows. */
  readonly projectId: string | undefined;
  readonly lane: Lane | undefined;
  readonly bytes: number;
  readonly deadlineMs: number;
}

export interface Arrivals {
  /** What is known of the body so far, or likely: where that turns out wrong, it has arrived when it is known. */
  arrive(whose: BodyHint, body: Pick<Arrival, "bytes" | "deadlineMs">): Arrival;
  /** The scan has said whose it is. */
  know(arrival: Arrival, whose: BodyHint): void;
  /** All its lines are in frames, or it has none. */
  leave(arrival: Arrival): void;
  /** Whether history of the project that arrives now must wait for a body before it. */
  mustWait(projectId: string): boolean;
  /** Fulfilled when nothing that came before may belong to the same history; undefined when it is so now. */
  turnOf(arrival: Arrival): Promise<void> | undefined;
}

interface Place extends Arrival {
  projectId: string | undefined;
  lane: Lane | undefined;
  readonly number: number;
  /** Fulfilled when more is known of it, or it has left. */
  changed: PromiseWithResolvers<void>;
}

export function createArrivals(): Arrivals {
  // What is or may be history, by project, "" for the unknown; each in the order of arrival. No project has that id.
  const histories = new Map<string, Place[]>();
  let lastNumber = 0;

  function arrive({ projectId, lane }: BodyHint, { bytes, deadlineMs }: Pick<Arrival, "bytes" | "deadlineMs">): Place {
    const changed = Promise.withResolvers<void>();
    const place = { projectId, lane, bytes, deadlineMs, number: ++lastNumber, changed };
    enter(place);
    return place;
  }

  function enter(place: Place): void {
    if (place.lane === "live") return;
    const history = histories.get(place.projectId ?? "") ?? [];
    let at = history.length;
    while (at > 0 && history[at - 1]!.number > place.number) at--;
    history.splice(at, 0, place);
    histories.set(place.projectId ?? "", history);
  }

  function withdraw(place: Place): void {
    const history = histories.get(place.projectId ?? "");
    const at = history?.indexOf(place) ?? -1;
    if (history === undefined || at < 0) return;
    history.splice(at, 1);
    if (history.length === 0) histories.delete(place.projectId ?? "");
  }

  function know(arrival: Arrival, { projectId, lane }: BodyHint): void {
    const place = arrival as Place;
    withdraw(place);
    place.projectId = projectId;
    place.lane = lane;
    enter(place);
    place.changed.resolve();
    place.changed = Promise.withResolvers();
  }

  function leave(arrival: Arrival): void {
    const place = arrival as Place;
    withdraw(place);
    place.changed.resolve();
  }

  /** The last before it: that one waits for those before itself. */
  function placeBefore({ projectId, number }: Place): Place | undefined {
    return lastBefore(projectId ?? "", number) ?? lastBefore("", number);
  }

  function lastBefore(projectId: string, number: number): Place | undefined {
    return histories.get(projectId)?.findLast((place) => place.number < number);
  }

  async function wait(place: Place): Promise<void> {
    for (let before = placeBefore(place); before !== undefined; before = placeBefore(place)) {
      await before.changed.promise;
    }
  }

  return {
    arrive,
    know,
    leave,
    mustWait: (projectId) => histories.has(projectId) || histories.has(""),
    turnOf: (arrival) => (placeBefore(arrival as Place) === undefined ? undefined : wait(arrival as Place)),
  };
}
