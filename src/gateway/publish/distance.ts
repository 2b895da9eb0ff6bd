// How far the store is: whether the way there and back takes longer than what the store does with
// a frame. A ping waits for the way alone, an acknowledgement for both. Where the way is most of
// it, frames that are under way together hardly wait for one another; on a near or slow disk they
// do, and then one large frame is less work than two. Must not choose what leaves.

import type { NatsLink } from "../../platform/nats/link.ts";

interface DistanceOptions {
  readonly link: Pick<NatsLink, "connected" | "connection" | "onChange">;
  readonly monotonicMs: () => number;
}

/** What is known here of a frame that was sent. */
interface Sent {
  readonly firstSentMonotonicMs: number;
  readonly sends: number;
}

/** The shortest of so many pings counts, because each may have waited for this process. */
const pingsKept = 8;
const pingEveryMs = 250;
/** A shorter way is no gain worth the further acknowledgements. */
const farMsMin = 2;
/**
 * What the way must take of an acknowledgement's time: where it takes less, two frames wait for
 * each other in the store for longer than they gain on the way.
 */
const farShareMin = 1 / 3;
/** How much the newest acknowledgement counts against those before. */
const newestShare = 0.1;

export class Distance {
  readonly #link: DistanceOptions["link"];
  readonly #monotonicMs: () => number;
  /** How long the last pings took. Another array after each reconnect. */
  #pingsMs: number[] = [];
  #nextPingMonotonicMs = 0;
  /** 0 until it is known. */
  #wayMs = 0;
  #ackMs: number | undefined = undefined;

  constructor({ link, monotonicMs }: DistanceOptions) {
    this.#link = link;
    this.#monotonicMs = monotonicMs;
    // The next server may be elsewhere.
    link.onChange(() => {
      this.#pingsMs = [];
      this.#wayMs = 0;
      this.#ackMs = undefined;
      this.#nextPingMonotonicMs = 0;
    });
  }

  /** False until it is known. */
  get isFar(): boolean {
    if (this.#wayMs < farMsMin || this.#ackMs === undefined) return false;
    return this.#wayMs >= farShareMin * this.#ackMs;
  }

  /** A frame leaves: pings, if it is time to. */
  left(): void {
    const monotonicMs = this.#monotonicMs();
    if (monotonicMs < this.#nextPingMonotonicMs || !this.#link.connected) return;
    this.#nextPingMonotonicMs = Number.POSITIVE_INFINITY;
    void this.#ping(this.#pingsMs, monotonicMs);
  }

  /** The frame is settled: it has its answer, or its time is over. */
  settled({ firstSentMonotonicMs, sends }: Sent): void {
    if (sends !== 1) return;
    const tookMs = this.#monotonicMs() - firstSentMonotonicMs;
    this.#ackMs = (this.#ackMs ?? tookMs) + newestShare * (tookMs - (this.#ackMs ?? tookMs));
  }

  async #ping(pingsMs: number[], beganMs: number): Promise<void> {
    try {
      await this.#link.connection.flush();
    } catch {
      // The connection is gone, and whoever uses it hears of that elsewhere.
      return;
    }
    const nowMs = this.#monotonicMs();
    if (pingsMs !== this.#pingsMs) return;
    pingsMs.push(nowMs - beganMs);
    if (pingsMs.length > pingsKept) pingsMs.shift();
    if (pingsMs.length === pingsKept) this.#wayMs = Math.min(...pingsMs);
    this.#nextPingMonotonicMs = nowMs + pingEveryMs;
  }
}
