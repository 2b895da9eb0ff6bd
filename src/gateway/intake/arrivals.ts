// The order of historical bodies that are not placed in the turn in which they came: which body has
// to wait for which. The project and lane of a body may be known when it arrives, or only when it
// has been scanned. Nothing else of what is in a body is known here.

import { setTimeout as delay } from "node:timers/promises";
import type { Lane } from "../../platform/base/lane.ts";
import type { BodyHint } from "../http/port.ts";

/**
 * For this time a body of unknown project, unless it is live, holds up all history that comes after
 * it. A scan tells its project, and takes about this time where few bodies wait. After that the
 * body holds up only bodies whose project or lane was not known at their arrival either; otherwise
 * a flood of bodies without keys would hold up everybody's history.
 */
const unknownMsMax = 50;

/** A body's place among the bodies that are being worked on. */
export interface Arrival {
  /** The project's id. Like the lane, it is undefined while it is not known. */
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
  /** The project or the lane of the body was not known when it arrived. */
  readonly wasHidden: boolean;
  /** Fulfilled when the body's project and lane become known, or when the body leaves. */
  changed: PromiseWithResolvers<void>;
}

export class Arrivals {
  /**
   * The bodies that are or may be historical, by project, each list in the order of arrival. Bodies
   * of an unknown project are under "", which is no project's id.
   */
  readonly #histories = new Map<string, Place[]>();
  readonly #monotonicMs: () => number;
  #lastNumber = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /**
   * Enters a body under the project and lane that it is known or likely to have. Where these turn
   * out wrong, `know` moves it. It keeps its number in the order of arrival, but later bodies may
   * have gone ahead of it by then.
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

  /** Enters the body anew, under the project and lane that its scan has found. */
  know(arrival: Arrival, { projectId, lane }: BodyHint): void {
    const place = arrival as Place;
    this.#withdraw(place);
    place.projectId = projectId;
    place.lane = lane;
    this.#enter(place);
    place.changed.resolve();
    place.changed = Promise.withResolvers();
  }

  /** Removes a body: all its lines are in frames, or none will be. */
  leave(arrival: Arrival): void {
    const place = arrival as Place;
    this.#withdraw(place);
    place.changed.resolve();
  }

  /** Whether a historical body of the project, arriving now, must wait for an earlier body. */
  mustWait(projectId: string): boolean {
    return (
      this.#histories.has(projectId) || this.#lastUnknownBefore(this.#lastNumber + 1) !== undefined
    );
  }

  /**
   * Fulfilled when no body that the arrival has to wait for is left before it; undefined when there
   * is none now.
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
   * The last of the earlier bodies that this one has to wait for. To wait for that one is enough,
   * because it waits itself for those before it.
   */
  #placeBefore({ projectId, number, wasHidden }: Place): Place | undefined {
    return (
      this.#lastBefore(projectId ?? "", number) ??
      (wasHidden ? this.#lastBefore("", number) : this.#lastUnknownBefore(number))
    );
  }

  #lastUnknownBefore(number: number): Place | undefined {
    const unknown = this.#lastBefore("", number);
    // If its time is over, so is that of the unknown bodies before it, which have waited longer.
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
