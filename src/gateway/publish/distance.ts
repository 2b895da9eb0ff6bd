// Estimates whether the network round trip is a large part of the time until an acknowledgement. A
// ping measures the round trip alone. If the round trip dominates, two frames in flight hardly
// delay each other. With a near store or a slow disk, one large frame is less work than two frames.

import type { NatsLink } from "../../platform/nats/link.ts";

interface DistanceOptions {
  readonly link: Pick<NatsLink, "connected" | "connection" | "onChange">;
  readonly monotonicMs: () => number;
}

/** Number of pings. The shortest ping counts, because any ping may wait for this process. */
const pingsMax = 8;
const pingEveryMs = 250;
/** Minimum round trip of a store that counts as far. A shorter round trip gains too little. */
const farMsMin = 2;
/** Minimum share of the round trip in the time until an acknowledgement, for a far store. */
const roundTripShareMin = 1 / 3;
/** Weight of the newest acknowledgement in the moving average. */
const newestShare = 0.1;

export class Distance {
  readonly #link: DistanceOptions["link"];
  readonly #monotonicMs: () => number;
  /** Durations of recent pings. A reconnect replaces the array, so that late pings are ignored. */
  #pingsMs: number[] = [];
  #nextPingMonotonicMs = 0;
  #roundTripMs = 0;
  #ackMs: number | undefined = undefined;

  constructor({ link, monotonicMs }: DistanceOptions) {
    this.#link = link;
    this.#monotonicMs = monotonicMs;
    // The next server may be at another distance.
    link.onChange(() => {
      this.#pingsMs = [];
      this.#roundTripMs = 0;
      this.#ackMs = undefined;
      this.#nextPingMonotonicMs = 0;
    });
  }

  get isFar(): boolean {
    if (this.#roundTripMs < farMsMin || this.#ackMs === undefined) return false;
    return this.#roundTripMs >= roundTripShareMin * this.#ackMs;
  }

  /** Records that a frame is sent. Sends a ping if a ping is due. */
  left(): void {
    const monotonicMs = this.#monotonicMs();
    if (monotonicMs < this.#nextPingMonotonicMs || !this.#link.connected) return;
    this.#nextPingMonotonicMs = Number.POSITIVE_INFINITY;
    void this.#ping(this.#pingsMs, monotonicMs);
  }

  settled({ firstSentMonotonicMs, sends }: { firstSentMonotonicMs: number; sends: number }): void {
    if (sends !== 1) return;
    const tookMs = this.#monotonicMs() - firstSentMonotonicMs;
    this.#ackMs = (this.#ackMs ?? tookMs) + newestShare * (tookMs - (this.#ackMs ?? tookMs));
  }

  async #ping(pingsMs: number[], beganMs: number): Promise<void> {
    try {
      await this.#link.connection.flush();
    } catch {
      // The connection is lost. Other code handles this.
      return;
    }
    const nowMs = this.#monotonicMs();
    if (pingsMs !== this.#pingsMs) return;
    pingsMs.push(nowMs - beganMs);
    if (pingsMs.length > pingsMax) pingsMs.shift();
    if (pingsMs.length === pingsMax) this.#roundTripMs = Math.min(...pingsMs);
    this.#nextPingMonotonicMs = nowMs + pingEveryMs;
  }
}
