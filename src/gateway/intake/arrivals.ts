// The order of historical bodies that are not placed in the event loop iteration in which they
// arrived: determines which body must wait for which. The project and lane of a body may be known
// on arrival, or only after its scan. Does not read the bodies.

import { setTimeout as delay } from "node:timers/promises";
import type { Lane } from "../../platform/base/lane.ts";
import type { BodyHint } from "../http/port.ts";

/**
 * Milliseconds for which a non-live body of unknown project blocks all later history. Its scan
 * finds the project, and takes about this time while few bodies wait. After this time the body
 * blocks only bodies whose project or lane was also unknown on arrival. Otherwise a flood of bodies
 * without keys would block the history of all projects.
 */
const unknownMsMax = 50;

/** A body's entry among the bodies in progress. */
export interface Arrival {
  /** The project's id; undefined while unknown, like the lane. */
  readonly projectId: string | undefined;
  readonly lane: Lane | undefined;
  readonly bytes: number;
  readonly deadlineMs: number;
}

interface Entry extends Arrival {
  projectId: string | undefined;
  lane: Lane | undefined;
  readonly number: number;
  readonly arrivedMs: number;
  /** Whether the project or the lane of the body was unknown on arrival. */
  readonly wasHidden: boolean;
  /**
   * A promise that is fulfilled when the body's project and lane become known, or when the body is
   * removed.
   */
  changed: PromiseWithResolvers<void>;
}

export class Arrivals {
  /**
   * The bodies that are or may be historical, by project, each list in the order of arrival. Bodies
   * of an unknown project are under "", which is not a project id.
   */
  readonly #histories = new Map<string, Entry[]>();
  readonly #monotonicMs: () => number;
  #lastNumber = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /**
   * Adds a body under its known or likely project and lane. If these are wrong, `update` moves the
   * body. The body keeps its number in the order of arrival, but later bodies may have overtaken it
   * by then.
   */
  arrive(
    { projectId, lane }: BodyHint,
    { bytes, deadlineMs }: Pick<Arrival, "bytes" | "deadlineMs">,
  ): Arrival {
    const entry: Entry = {
      projectId,
      lane,
      bytes,
      deadlineMs,
      number: ++this.#lastNumber,
      arrivedMs: this.#monotonicMs(),
      wasHidden: projectId === undefined || lane === undefined,
      changed: Promise.withResolvers<void>(),
    };
    this.#enter(entry);
    return entry;
  }

  /** Moves the body to the project and lane that its scan has found. */
  update(arrival: Arrival, { projectId, lane }: BodyHint): void {
    const entry = arrival as Entry;
    this.#withdraw(entry);
    entry.projectId = projectId;
    entry.lane = lane;
    this.#enter(entry);
    entry.changed.resolve();
    entry.changed = Promise.withResolvers();
  }

  /** Removes a body. Called when all its lines are in frames, or when no more lines will be. */
  leave(arrival: Arrival): void {
    const entry = arrival as Entry;
    this.#withdraw(entry);
    entry.changed.resolve();
  }

  /**
   * Returns whether a historical body of the project that arrives now must wait for an earlier
   * body.
   */
  mustWait(projectId: string): boolean {
    return (
      this.#histories.has(projectId) || this.#lastUnknownBefore(this.#lastNumber + 1) !== undefined
    );
  }

  /**
   * Returns a promise that is fulfilled when the body no longer has to wait for an earlier one;
   * undefined if it does not have to wait now.
   */
  turnOf(arrival: Arrival): Promise<void> | undefined {
    const entry = arrival as Entry;
    return this.#entryBefore(entry) === undefined ? undefined : this.#wait(entry);
  }

  #enter(entry: Entry): void {
    if (entry.lane === "live") return;
    const history = this.#histories.get(entry.projectId ?? "") ?? [];
    let at = history.length;
    while (at > 0 && history[at - 1]!.number > entry.number) at--;
    history.splice(at, 0, entry);
    this.#histories.set(entry.projectId ?? "", history);
  }

  #withdraw(entry: Entry): void {
    const history = this.#histories.get(entry.projectId ?? "");
    const at = history?.indexOf(entry) ?? -1;
    if (history === undefined || at < 0) return;
    history.splice(at, 1);
    if (history.length === 0) this.#histories.delete(entry.projectId ?? "");
  }

  /**
   * Returns the last of the earlier bodies that this one must wait for. That body in turn waits for
   * those before it, so waiting for one is enough.
   */
  #entryBefore({ projectId, number, wasHidden }: Entry): Entry | undefined {
    return (
      this.#lastBefore(projectId ?? "", number) ??
      (wasHidden ? this.#lastBefore("", number) : this.#lastUnknownBefore(number))
    );
  }

  #lastUnknownBefore(number: number): Entry | undefined {
    const unknown = this.#lastBefore("", number);
    // If its time is over, so is that of earlier unknown bodies, which have waited longer.
    return unknown === undefined || this.#unknownMsLeft(unknown) <= 0 ? undefined : unknown;
  }

  #unknownMsLeft({ arrivedMs }: Entry): number {
    return arrivedMs + unknownMsMax - this.#monotonicMs();
  }

  #lastBefore(projectId: string, number: number): Entry | undefined {
    return this.#histories.get(projectId)?.findLast((entry) => entry.number < number);
  }

  async #wait(entry: Entry): Promise<void> {
    for (;;) {
      const before = this.#entryBefore(entry);
      if (before === undefined) return;
      if (entry.wasHidden || before.projectId !== undefined) await before.changed.promise;
      else {
        const waitMs = Math.max(1, this.#unknownMsLeft(before));
        await Promise.race([before.changed.promise, delay(waitMs)]);
      }
    }
  }
}
