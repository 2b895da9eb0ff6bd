// Ensures that historical events are written in the order in which their bodies arrived. The
// project and lane of a body may be known only after its scan.

import { setTimeout as delay } from "node:timers/promises";
import type { Lane } from "../../platform/base/lane.ts";
import type { BodyHint } from "../http/port.ts";

/**
 * While the project of a body is unknown, the body delays later historical bodies for at most this
 * time. A scan takes about as long.
 */
const unknownMsMax = 50;

export interface Arrival {
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
  readonly wasHidden: boolean;
  /** Fulfilled when the project and lane become known, or when the body is removed. */
  changed: PromiseWithResolvers<void>;
}

export class Arrivals {
  readonly #histories = new Map<string, Entry[]>();
  readonly #monotonicMs: () => number;
  #lastNumber = 0;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

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

  update(arrival: Arrival, { projectId, lane }: BodyHint): void {
    const entry = arrival as Entry;
    this.#withdraw(entry);
    entry.projectId = projectId;
    entry.lane = lane;
    this.#enter(entry);
    entry.changed.resolve();
    entry.changed = Promise.withResolvers();
  }

  /** Call this when no more lines of the body will be written. */
  leave(arrival: Arrival): void {
    const entry = arrival as Entry;
    this.#withdraw(entry);
    entry.changed.resolve();
  }

  mustWait(projectId: string): boolean {
    return (
      this.#histories.has(projectId) || this.#lastUnknownBefore(this.#lastNumber + 1) !== undefined
    );
  }

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

  #entryBefore({ projectId, number, wasHidden }: Entry): Entry | undefined {
    return (
      this.#lastBefore(projectId ?? "", number) ??
      (wasHidden ? this.#lastBefore("", number) : this.#lastUnknownBefore(number))
    );
  }

  #lastUnknownBefore(number: number): Entry | undefined {
    const unknown = this.#lastBefore("", number);
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
