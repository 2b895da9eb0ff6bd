// The order of history among the bodies that are not placed in the turn in which they came: who has
// to wait for whom. Whose a body is may be known when it arrives, or when it has been scanned.
// Nothing else of what is in it is known here.

import { setTimeout as delay } from "node:timers/promises";
import type { BodyHint, Lane } from "../base/types.ts";

/**
 * So long a body that does not show whose it is holds up all history behind it: as long as a scan
 * takes where few bodies wait. After that it holds up only those that do not show theirs either, or
 * a flood without keys would hold up everybody's history.
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

export class Arrivals {
  /**
   * What is or may be history, by project, "" for the unknown; each in the order of arrival. No
   * project has that id.
   */
  readonly #histories = new Map<string, Place[]>();
  readonly #monotonicMs: () => number;
  #lastNumber = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /**
   * Takes what is known of the body so far, or likely. Where that turns out wrong, it has arrived
   * when it is known.
   */
  arrive(
    { projectId, lane }: BodyHint,
    { bytes, deadlineMs }: Pick<Arrival, "bytes" | "deadlineMs">,
  ): Arrival {
    const place: Place = {
      projectId,
      lane,
      bytes,
      deadlineMs,
      number: ++this.#lastNumber,
      arrivedMs: this.#monotonicMs(),
      wasHidden: projectId === undefined || lane === undefined,
      changed: Promise.withResolvers<void>(),
    };
    this.#enter(place);
    return place;
  }

  /** The scan has said whose it is. */
  know(arrival: Arrival, { projectId, lane }: BodyHint): void {
    const place = arrival as Place;
    this.#withdraw(place);
    place.projectId = projectId;
    place.lane = lane;
    this.#enter(place);
    place.changed.resolve();
    place.changed = Promise.withResolvers();
  }

  /** All its lines are in frames, or it has none. */
  leave(arrival: Arrival): void {
    const place = arrival as Place;
    this.#withdraw(place);
    place.changed.resolve();
  }

  /** Whether history of the project that arrives now must wait for a body before it. */
  mustWait(projectId: string): boolean {
    return (
      this.#histories.has(projectId) || this.#lastUnknownBefore(this.#lastNumber + 1) !== undefined
    );
  }

  /**
   * Fulfilled when nothing that came before may belong to the same history; undefined when it is so
   * now.
   */
  turnOf(arrival: Arrival): Promise<void> | undefined {
    const place = arrival as Place;
    return this.#placeBefore(place) === undefined ? undefined : this.#wait(place);
  }

  #enter(place: Place): void {
    if (place.lane === "live") return;
    const history = this.#histories.get(place.projectId ?? "") ?? [];
    let at = history.length;
    while (at > 0 && history[at - 1]!.number > place.number) at--;
    history.splice(at, 0, place);
    this.#histories.set(place.projectId ?? "", history);
  }

  #withdraw(place: Place): void {
    const history = this.#histories.get(place.projectId ?? "");
    const at = history?.indexOf(place) ?? -1;
    if (history === undefined || at < 0) return;
    history.splice(at, 1);
    if (history.length === 0) this.#histories.delete(place.projectId ?? "");
  }

  /**
   * The last body before it that it waits for. One is enough, because that one waits for those
   * before itself.
   */
  #placeBefore({ projectId, number, wasHidden }: Place): Place | undefined {
    return (
      this.#lastBefore(projectId ?? "", number) ??
      (wasHidden ? this.#lastBefore("", number) : this.#lastUnknownBefore(number))
    );
  }

  #lastUnknownBefore(number: number): Place | undefined {
    const unknown = this.#lastBefore("", number);
    // Those before it have been unknown for longer, so they need not be asked.
    return unknown === undefined || this.#unknownMsLeft(unknown) <= 0 ? undefined : unknown;
  }

  #unknownMsLeft({ arrivedMs }: Place): number {
    return arrivedMs + unknownMsMax - this.#monotonicMs();
  }

  #lastBefore(projectId: string, number: number): Place | undefined {
    return this.#histories.get(projectId)?.findLast((place) => place.number < number);
  }

  async #wait(place: Place): Promise<void> {
    for (;;) {
      const before = this.#placeBefore(place);
      if (before === undefined) return;
      if (place.wasHidden || before.projectId !== undefined) await before.changed.promise;
      else {
        const waitMs = Math.max(1, this.#unknownMsLeft(before));
        await Promise.race([before.changed.promise, delay(waitMs)]);
      }
    }
  }
}
