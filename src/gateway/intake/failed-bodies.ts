// Remembers the large bodies that failed and hold events without uuids. Some of their frames may be
// stored. When such a body comes again, its frames get the same message ids as before, so that the
// store knows them. A body that comes again after a 200 is meant, and is stored again.

import { randomBytes } from "node:crypto";

/** Maximum number of remembered bodies. Beyond that the oldest is forgotten. */
const bodiesMax = 1_024;
/** As long as the streams know a message id. */
const rememberedMs = 120_000;

interface Failed {
  readonly sendingId: string;
  readonly untilMonotonicMs: number;
}

export class FailedBodies {
  readonly #monotonicMs: () => number;
  /** By body id. The same body may be sent by several clients, so there may be several. */
  readonly #failed = new Map<string, Failed[]>();

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** The id of a sending of the body that failed, and is no longer remembered; else a new id. */
  take(bodyId: string): string {
    const now = this.#monotonicMs();
    const all = this.#failed.get(bodyId) ?? [];
    this.#failed.delete(bodyId);
    const [first, ...others] = all.filter(({ untilMonotonicMs }) => untilMonotonicMs > now);
    if (others.length > 0) this.#failed.set(bodyId, others);
    return first?.sendingId ?? randomBytes(9).toString("base64url");
  }

  /** The sending has failed: the next one of the body is taken for its retry. */
  remember(bodyId: string, sendingId: string): void {
    const failed = { sendingId, untilMonotonicMs: this.#monotonicMs() + rememberedMs };
    const all = [...(this.#failed.get(bodyId) ?? []), failed];
    this.#failed.delete(bodyId);
    this.#failed.set(bodyId, all.slice(-bodiesMax));
    if (this.#failed.size > bodiesMax) this.#failed.delete(this.#failed.keys().next().value!);
  }
}

export interface NamedBody {
  /** A hash of project, lane and body: nothing else in the stream has the same. */
  readonly id: string;
  readonly failed: FailedBodies;
}
