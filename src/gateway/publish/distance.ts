// Estimates whether the network round trip is a large part of the time until an acknowledgement. If
// so, two frames in flight hardly delay each other. If the store is near, one large frame causes
// less work than two small ones.

import type { NatsLink } from "../../platform/nats/link.ts";

interface DistanceOptions {
  readonly link: Pick<NatsLink, "connected" | "connection" | "onChange">;
  readonly monotonicMs: () => number;
}

/**
 * Only the shortest of these pings counts, because the others may have been delayed by this
 * process.
 */
const pingsMax = 8;
const pingEveryMs = 250;
/** If the round trip is shorter, a second frame in flight gains too little. */
const farMsMin = 2;
const roundTripShareMin = 1 / 3;
const newestShare = 0.1;

export class Distance {
  readonly #link: DistanceOptions["link"];
  readonly #monotonicMs: () => number;
  #pingsMs: number[] = [];
  #nextPingMonotonicMs = 0;
  #roundTripMs = 0;
  #ackMs: number | undefined = undefined;

  constructor({ link, monotonicMs }: DistanceOptions) {
    this.#link = link;
    this.#monotonicMs = monotonicMs;
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
