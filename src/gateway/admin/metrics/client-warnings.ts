// Keeps the last things that went wrong for clients, for people who watch. It is a small ring: a
// new warning pushes out the oldest, and only the first few of a second are kept, so that a flood
// costs little. The same fault of the same project, path and client is kept as one warning with a
// count. No value of an event and no key is kept, only the beginning of a key that belongs to no
// project.

import type {
  ClientWarning,
  ClientWarningOrigin,
  ClientWarningTaker,
} from "../../../platform/base/client-warning.ts";
import { errorTable, type Problem } from "../../../platform/base/errors.ts";
import { RateWindow } from "../../../platform/base/rate-window.ts";

interface ClientWarningsClock {
  /** Milliseconds since the epoch. */
  wallMs(): number;
  monotonicMs(): number;
}

const keptMax = 50;
const perSecondMax = 20;

export class ClientWarnings implements ClientWarningTaker {
  readonly #clock: ClientWarningsClock;
  readonly #kept: ClientWarning[] = [];
  readonly #rate: RateWindow;

  constructor(clock: ClientWarningsClock) {
    this.#clock = clock;
    this.#rate = new RateWindow({ max: perSecondMax, monotonicMs: () => clock.monotonicMs() });
  }

  get hasRoom(): boolean {
    return !this.#rate.isSpent;
  }

  refused(origin: ClientWarningOrigin, { code, detail }: Problem): void {
    this.#keep(origin, { code, detail, status: errorTable[code].status, events: 0 });
  }

  notStored(
    origin: ClientWarningOrigin,
    { code, detail, events }: Parameters<ClientWarningTaker["notStored"]>[1],
  ): void {
    this.#keep(origin, { code, detail, status: 200, events });
  }

  /** The warnings that are kept, the newest last. */
  latest(): readonly ClientWarning[] {
    return [...this.#kept];
  }

  #keep(
    origin: ClientWarningOrigin,
    what: Pick<ClientWarning, "status" | "code" | "detail" | "events">,
  ): void {
    if (this.#rate.isSpent) return;
    this.#rate.spend(1);
    const kept = this.#kept;
    const { projectId, path, client } = origin;
    const warning = { atMs: this.#clock.wallMs(), projectId, path, client, times: 1, ...what };
    const at = kept.findIndex((earlier) => isAlike(earlier, warning));
    const [earlier] = at >= 0 ? kept.splice(at, 1) : [];
    if (kept.length === keptMax) kept.shift();
    kept.push(
      earlier === undefined
        ? warning
        : { ...warning, times: earlier.times + 1, events: earlier.events + warning.events },
    );
  }
}

/**
 * Whether both are the same fault of the same project, path and client. Their details may differ.
 */
function isAlike(left: ClientWarning, right: ClientWarning): boolean {
  return (
    left.code === right.code &&
    left.status === right.status &&
    left.projectId === right.projectId &&
    left.path === right.path &&
    left.client === right.client
  );
}
