// The order of history among the bodies that are not placed in the turn in which they came: who has
// to wait for whom. Whose body it is may be known when it arrives, or when it has been scanned.
// Knows nothing else of what is in a body.

import { setTimeout as delay } from "node:timers/promises";
import type { BodyHint, Lane } from "../base/types.ts";

/**
 * A body that does not show whose it is stands before all history, for as long as a scan takes
 * where not many wait; for longer only before those that do not show it either. Else bodies without
 * a key would hold up everybody's.
 */
const unknownMsMax = 50;

/** A body's place among those that are being worked on. */
export interface Arrival {
  /** Both undefined while nobody knows. */
  readonly projectId: string | undefined;
  readonly lane: Lane | undefined;
  readonly bytes: number;
  readonly deadlineMs: number;
}

export interface Arrivals {
  /**
   * What is known of the body so far, or likely: where that turns out wrong, it has arrived when it
   * is known.
   */
  arrive(whose: BodyHint, body: Pick<Arrival, "bytes" | "deadlineMs">): Arrival;
  /** The scan has said whose it is. */
  know(arrival: Arrival, whose: BodyHint): void;
  /** All its lines are in frames, or it has none. */
  leave(arrival: Arrival): void;
  /** Whether history of the project that arrives now must wait for a body before it. */
  mustWait(projectId: string): boolean;
  /**
   * Fulfilled when nothing that came before may belong to the same history; undefined when it is so
   * now.
   */
  turnOf(arrival: Arrival): Promise<void> | undefined;
}

interface Place extends Arrival {
  projectId: string | undefined;
  lane: Lane | undefined;
  readonly number: number;
  readonly arrivedMs: number;
  /** It did not show whose it is when it came. */
  readonly wasHidden: boolean;
  /** Fulfilled when more is known of it, or it has left. */
  changed: PromiseWithResolvers<void>;
}

/** `nowMs`: monotonic milliseconds. */
export function createArrivals(nowMs: () => number): Arrivals {
  // What is or may be history, by project, "" for the unknown; each in the order of arrival. No
  // project has that id.
  const histories = new Map<string, Place[]>();
  let lastNumber = 0;

  function arrive(
    { projectId, lane }: BodyHint,
    { bytes, deadlineMs }: Pick<Arrival, "bytes" | "deadlineMs">,
  ): Place {
    const changed = Promise.withResolvers<void>();
    const wasHidden = projectId === undefined || lane === undefined;
    const number = ++lastNumber;
    const place = {
      projectId,
      lane,
      bytes,
      deadlineMs,
      number,
      arrivedMs: nowMs(),
      wasHidden,
      changed,
    };
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
  function placeBefore({ projectId, number, wasHidden }: Place): Place | undefined {
    return (
      lastBefore(projectId ?? "", number) ??
      (wasHidden ? lastBefore("", number) : lastUnknownBefore(number))
    );
  }

  function lastUnknownBefore(number: number): Place | undefined {
    const unknown = lastBefore("", number);
    // Those before it have been unknown for longer.
    return unknown === undefined || unknownMsLeft(unknown) <= 0 ? undefined : unknown;
  }

  function unknownMsLeft({ arrivedMs }: Place): number {
    return arrivedMs + unknownMsMax - nowMs();
  }

  function lastBefore(projectId: string, number: number): Place | undefined {
    return histories.get(projectId)?.findLast((place) => place.number < number);
  }

  async function wait(place: Place): Promise<void> {
    for (let before = placeBefore(place); before !== undefined; before = placeBefore(place)) {
      if (place.wasHidden || before.projectId !== undefined) await before.changed.promise;
      else await Promise.race([before.changed.promise, delay(Math.max(1, unknownMsLeft(before)))]);
    }
  }

  return {
    arrive,
    know,
    leave,
    mustWait: (projectId) =>
      histories.has(projectId) || lastUnknownBefore(lastNumber + 1) !== undefined,
    turnOf: (arrival) =>
      placeBefore(arrival as Place) === undefined ? undefined : wait(arrival as Place),
  };
}
