// One project's meter in this process: token buckets that hold the project to its quota, and counts
// for its usage record. All are plain numbers: a request costs a few additions, no timer, no
// memory. Must not know requests or NATS.

import type { Excess, ProjectMeter, ProjectQuota, RequestCost } from "../../base/types.ts";

/** What a project's requests have come to, in this process. */
export interface Counts {
  /** Events that are stored, including those of a request that was answered 503 for its others. */
  readonly accepted: number;
  /** The bytes of those events' lines. */
  readonly storedBytes: number;
  /** Events that were sent to JetStream and not acknowledged in time: they may be stored or not. */
  readonly unknown: number;
  /** Events left out and events in error. */
  readonly dropped: number;
  readonly rateLimitedRequests: number;
  readonly rateLimitedEvents: number;
  /** The bytes of the refused requests' bodies, after decompression. */
  readonly rateLimitedBytes: number;
}

export const noCounts: Counts = {
  accepted: 0,
  storedBytes: 0,
  unknown: 0,
  dropped: 0,
  rateLimitedRequests: 0,
  rateLimitedEvents: 0,
  rateLimitedBytes: 0,
};

/**
 * A burst is never less than what an SDK sends at once. So a quota, however low, limits the rate
 * and shuts no client out. One request may cost two bursts, of which one can be debt.
 */
const burstEventsMin = 100;
const burstBytesMin = 65_536;
const burstsARequestMax = 2;

/**
 * A project may store this many bytes a minute even where far fewer were sent for them: equal
 * events compress a thousand times and more.
 */
const expansionBytesAMinute = 8_388_608;
const minuteMs = 60_000;

/** A rate, and how many tokens a burst has. */
interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/**
 * Tokens that come back at a rate, up to a burst. A request that finds a token may take more tokens
 * than there are, so that one larger than the burst gets through. The debt is paid off before the
 * next request. Everything that passes is paid for in full, so the rate holds. The debt is at most
 * a burst, because keys are public, and one request of a stranger must not shut a project out for
 * hours.
 */
class TokenBucket {
  #perSecond: number;
  #burst: number;
  #level: number;
  #filledMonotonicMs: number;

  constructor({ perSecond, burst }: Rate, monotonicMs: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#level = burst;
    this.#filledMonotonicMs = monotonicMs;
  }

  /** Tokens and debt stay, so that a change of the quota gives nobody a second burst. */
  change({ perSecond, burst }: Rate, monotonicMs: number): void {
    this.#fill(monotonicMs);
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#level = Math.max(-burst, Math.min(this.#level, burst));
  }

  /** The most tokens that one request may ever take. */
  get requestMax(): number {
    return this.#burst * burstsARequestMax;
  }

  get perSecond(): number {
    return this.#perSecond;
  }

  /**
   * 0 while there is a token and taking `tokens` would leave a debt of at most a burst. Else the
   * milliseconds until that is so, at least 1.
   */
  waitMs(tokens: number, monotonicMs: number): number {
    this.#fill(monotonicMs);
    const due = Math.max(0, tokens - this.#burst);
    return this.#level > 0 && this.#level >= due
      ? 0
      : Math.max(1, ((due - this.#level) / this.#perSecond) * 1_000);
  }

  /** Only for tokens that `waitMs` has returned 0 for. Returns how many were taken. */
  take(tokens: number): number {
    this.#level -= tokens;
    return tokens;
  }

  /** Puts tokens back, up to the burst, since others may have come back by themselves meanwhile. */
  giveBack(tokens: number, monotonicMs: number): void {
    this.#fill(monotonicMs);
    if (tokens > 0) this.#level = Math.min(this.#burst, this.#level + tokens);
  }

  #fill(monotonicMs: number): void {
    const elapsedMs = monotonicMs - this.#filledMonotonicMs;
    this.#filledMonotonicMs = monotonicMs;
    // A clock that went back gives nothing, and takes nothing.
    if (elapsedMs > 0)
      this.#level = Math.min(this.#burst, this.#level + (elapsedMs / 1_000) * this.#perSecond);
  }
}

export class Meter implements ProjectMeter {
  readonly #monotonicMs: () => number;
  #events: TokenBucket | undefined = undefined;
  #bytes: TokenBucket | undefined = undefined;
  #expansionBytesLeft = expansionBytesAMinute;
  #expansionMonotonicMs = Number.NEGATIVE_INFINITY;
  #stored = 0;
  #storedBytes = 0;
  #unknown = 0;
  #dropped = 0;
  #rateLimitedRequests = 0;
  #rateLimitedEvents = 0;
  #rateLimitedBytes = 0;

  /** `monotonicMs` is read only where there is a quota, and for bodies that expand far. */
  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** This quota holds from now on. Setting the same quota again changes nothing. */
  setQuota({ eventsPerSecond, bytesPerSecond, burstSeconds }: ProjectQuota = noQuota): void {
    this.#events = this.#bucketOf(
      this.#events,
      rateOf(eventsPerSecond, burstSeconds, burstEventsMin),
    );
    this.#bytes = this.#bucketOf(this.#bytes, rateOf(bytesPerSecond, burstSeconds, burstBytesMin));
  }

  #bucketOf(bucket: TokenBucket | undefined, rate: Rate | undefined): TokenBucket | undefined {
    if (rate === undefined) return undefined;
    if (bucket === undefined) return new TokenBucket(rate, this.#monotonicMs());
    bucket.change(rate, this.#monotonicMs());
    return bucket;
  }

  takesExpansion(bytes: number): boolean {
    const monotonicMs = this.#monotonicMs();
    const back = ((monotonicMs - this.#expansionMonotonicMs) / minuteMs) * expansionBytesAMinute;
    this.#expansionBytesLeft = Math.min(
      expansionBytesAMinute,
      this.#expansionBytesLeft + Math.max(0, back),
    );
    this.#expansionMonotonicMs = monotonicMs;
    if (bytes > this.#expansionBytesLeft) return false;
    this.#expansionBytesLeft -= bytes;
    return true;
  }

  admit(cost: RequestCost): number {
    if (this.#events === undefined && this.#bytes === undefined) return 0;
    const monotonicMs = this.#monotonicMs();
    const tokens = eventTokens(cost.events);
    const waitMs = Math.max(
      this.#events?.waitMs(tokens, monotonicMs) ?? 0,
      this.#bytes?.waitMs(cost.bytes, monotonicMs) ?? 0,
    );
    if (waitMs > 0) {
      this.#rateLimitedRequests++;
      this.#rateLimitedEvents += cost.events;
      this.#rateLimitedBytes += cost.bytes;
      return waitMs;
    }
    if (this.#events !== undefined) cost.eventsTaken = this.#events.take(tokens);
    if (this.#bytes !== undefined) cost.bytesTaken = this.#bytes.take(cost.bytes);
    return 0;
  }

  rateHit({ events, bytes }: RequestCost): Pick<Excess, "what" | "perSecond"> {
    const monotonicMs = this.#monotonicMs();
    const eventsMs = this.#events?.waitMs(eventTokens(events), monotonicMs) ?? 0;
    const bytesMs = this.#bytes?.waitMs(bytes, monotonicMs) ?? 0;
    return eventsMs >= bytesMs
      ? { what: "events", perSecond: this.#events?.perSecond ?? 0 }
      : { what: "bytes", perSecond: this.#bytes?.perSecond ?? 0 };
  }

  exceeds({ events, bytes }: RequestCost): Excess | undefined {
    return excessOf("events", this.#events, events) ?? excessOf("bytes", this.#bytes, bytes);
  }

  giveBack({ events, bytes, eventsTaken, bytesTaken }: RequestCost, kept: number): void {
    if (this.#events === undefined && this.#bytes === undefined) return;
    const monotonicMs = this.#monotonicMs();
    this.#events?.giveBack(eventsTaken - kept, monotonicMs);
    this.#bytes?.giveBack(
      kept === 0 ? bytesTaken : bytesTaken - (bytes * kept) / events,
      monotonicMs,
    );
  }

  countStored(events: number, bytes: number): void {
    this.#stored += events;
    this.#storedBytes += bytes;
  }

  countUnknown(events: number): void {
    this.#unknown += events;
  }

  countDropped(events: number, cost: RequestCost): void {
    this.#dropped += events;
    this.#events?.giveBack(
      cost.eventsTaken - eventTokens(cost.events - events),
      this.#monotonicMs(),
    );
  }

  get counts(): Counts {
    return {
      accepted: this.#stored,
      storedBytes: this.#storedBytes,
      unknown: this.#unknown,
      dropped: this.#dropped,
      rateLimitedRequests: this.#rateLimitedRequests,
      rateLimitedEvents: this.#rateLimitedEvents,
      rateLimitedBytes: this.#rateLimitedBytes,
    };
  }
}

const noQuota: ProjectQuota = { burstSeconds: 0 };

function rateOf(
  perSecond: number | undefined,
  burstSeconds: number,
  burstMin: number,
): Rate | undefined {
  return perSecond === undefined
    ? undefined
    : { perSecond, burst: Math.max(perSecond * burstSeconds, burstMin) };
}

function excessOf(
  what: Excess["what"],
  bucket: TokenBucket | undefined,
  tokens: number,
): Excess | undefined {
  if (bucket === undefined || tokens <= bucket.requestMax) return undefined;
  return { what, perSecond: bucket.perSecond, requestMax: bucket.requestMax };
}

/** A request without events is work too, and costs one token. */
function eventTokens(events: number): number {
  return Math.max(events, 1);
}
