// One project's meter in this process: token buckets that hold the project to its quota, and counts
// for its usage record. All are plain numbers: a request costs a few additions, no timer, no
// memory. Must not know requests or NATS.

import { expansionBytesAMinute } from "../../base/expansion.ts";
import type { Excess, ProjectMeter, ProjectQuota, RequestCost } from "../../base/types.ts";
import { Portions } from "./portions.ts";

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
  /** Without those of bodies that were refused before they were scanned. */
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
export const burstEventsMin = 100;
export const burstBytesMin = 65_536;

/** A rate, how many tokens a burst has, and how large a debt one request may leave. */
interface Rate {
  readonly perSecond: number;
  readonly burst: number;
  readonly debtMax: number;
}

/**
 * A project that is kept out for so long is far over its quota. One that is kept out for less is
 * told how many events were refused, which takes a scan.
 */
const farOverMs = 100;

const expansionRate: Rate = {
  perSecond: expansionBytesAMinute / 60,
  burst: expansionBytesAMinute,
  debtMax: 0,
};

/** The part of a request's cost that it goes on owing. */
interface KeptCost {
  readonly events: number;
  readonly bytes: number;
  readonly expansion: number;
}

/**
 * Tokens that come back at a rate, up to a burst. A request that finds a token may take more tokens
 * than there are, so that one larger than the burst gets through. The debt is paid off before the
 * next request. Everything that passes is paid for in full, so the rate holds. The debt of a quota
 * is at most a burst, because keys are public, and one request of a stranger must not shut a
 * project out for hours.
 */
class TokenBucket {
  #perSecond: number;
  #burst: number;
  #debtMax: number;
  #level: number;
  #filledMonotonicMs: number;

  constructor({ perSecond, burst, debtMax }: Rate, monotonicMs: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#debtMax = debtMax;
    this.#level = burst;
    this.#filledMonotonicMs = monotonicMs;
  }

  /** Tokens and debt stay, so that a change of the quota gives nobody a second burst. */
  change({ perSecond, burst, debtMax }: Rate, monotonicMs: number): void {
    this.#fill(monotonicMs);
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#debtMax = debtMax;
    this.#level = Math.max(-debtMax, Math.min(this.#level, burst));
  }

  /** The most tokens that one request may ever take. */
  get requestMax(): number {
    return this.#burst + this.#debtMax;
  }

  get perSecond(): number {
    return this.#perSecond;
  }

  /** At the time of the last call of `waitMs`, there was nothing for any request. */
  get isEmpty(): boolean {
    return this.#level <= 0;
  }

  /**
   * 0 while there is a token and taking `tokens` would leave a debt that is allowed. Else the
   * milliseconds until that is so, at least 1.
   */
  waitMs(tokens: number, monotonicMs: number): number {
    this.#fill(monotonicMs);
    const due = Math.max(0, tokens - this.#debtMax);
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
  /** Tells this meter from one of the same project that was evicted before this one was made. */
  readonly series: number;
  readonly #monotonicMs: () => number;
  #events: TokenBucket | undefined = undefined;
  #bytes: TokenBucket | undefined = undefined;
  /** Undefined until the first body that expands far. */
  #expansion: TokenBucket | undefined = undefined;
  #portions = new Portions();
  /** The quota that was hit last is that of bytes, not that of events. */
  #isOverBytes = false;
  #stored = 0;
  #storedBytes = 0;
  #unknown = 0;
  #dropped = 0;
  #rateLimitedRequests = 0;
  #rateLimitedEvents = 0;
  #rateLimitedBytes = 0;

  /** `monotonicMs` is read only where there is a quota, and for bodies that expand far. */
  constructor(monotonicMs: () => number, series = 0) {
    this.#monotonicMs = monotonicMs;
    this.series = series;
  }

  /** This quota holds from now on. Setting the same quota again changes nothing. */
  setQuota({ eventsPerSecond, bytesPerSecond, burstSeconds }: ProjectQuota = noQuota): void {
    this.#events = this.#bucketOf(
      this.#events,
      rateOf(eventsPerSecond, burstSeconds, burstEventsMin),
    );
    this.#bytes = this.#bucketOf(this.#bytes, rateOf(bytesPerSecond, burstSeconds, burstBytesMin));
    // What was refused by the quota before says nothing of this one.
    this.#portions = new Portions();
  }

  #bucketOf(bucket: TokenBucket | undefined, rate: Rate | undefined): TokenBucket | undefined {
    if (rate === undefined) return undefined;
    if (bucket === undefined) return new TokenBucket(rate, this.#monotonicMs());
    bucket.change(rate, this.#monotonicMs());
    return bucket;
  }

  expansionWaitMs(bytes: number): number {
    const monotonicMs = this.#monotonicMs();
    this.#expansion ??= new TokenBucket(expansionRate, monotonicMs);
    return bytes > this.#expansion.requestMax
      ? Number.POSITIVE_INFINITY
      : this.#expansion.waitMs(bytes, monotonicMs);
  }

  admit(cost: RequestCost): number {
    const waitMs = this.#quotaWaitMs(cost);
    if (waitMs > 0) {
      this.#rateLimitedRequests++;
      this.#rateLimitedEvents += cost.events;
      this.#rateLimitedBytes += cost.bytes;
      return waitMs;
    }
    if (this.#events !== undefined) cost.eventsTaken = this.#events.take(eventTokens(cost.events));
    if (this.#bytes !== undefined) cost.bytesTaken = this.#bytes.take(cost.bytes);
    if (cost.expansion > 0) cost.expansionTaken = this.#expansion?.take(cost.expansion) ?? 0;
    return 0;
  }

  refuseUnread(bytes: number): number {
    const monotonicMs = this.#monotonicMs();
    const leastMs = Math.max(
      this.#events?.waitMs(1, monotonicMs) ?? 0,
      this.#bytes?.waitMs(1, monotonicMs) ?? 0,
    );
    if (leastMs < farOverMs) return 0;
    this.#rateLimitedRequests++;
    this.#rateLimitedBytes += bytes;
    return this.#quotaWaitMs({ events: 1, bytes });
  }

  #quotaWaitMs({ events, bytes }: Pick<RequestCost, "events" | "bytes">): number {
    if (this.#events === undefined && this.#bytes === undefined) return 0;
    const monotonicMs = this.#monotonicMs();
    const eventsMs = this.#events?.waitMs(eventTokens(events), monotonicMs) ?? 0;
    const bytesMs = this.#bytes?.waitMs(bytes, monotonicMs) ?? 0;
    // Where both are 0, a portion gathers for the limit that was hit before.
    if (eventsMs + bytesMs > 0) this.#isOverBytes = bytesMs > eventsMs;
    if (this.#events?.isEmpty || this.#bytes?.isEmpty) this.#portions.refused(monotonicMs);
    return Math.max(eventsMs, bytesMs, this.#portions.waitMs(monotonicMs));
  }

  get rateHit(): Pick<Excess, "what" | "perSecond"> {
    const bucket = this.#isOverBytes ? this.#bytes : this.#events;
    return { what: this.#isOverBytes ? "bytes" : "events", perSecond: bucket?.perSecond ?? 0 };
  }

  exceeds({ events, bytes }: RequestCost): Excess | undefined {
    return excessOf("events", this.#events, events) ?? excessOf("bytes", this.#bytes, bytes);
  }

  giveBack(cost: RequestCost, kept: number): void {
    const share = kept === 0 ? 0 : kept / cost.events;
    this.#keep(cost, {
      events: kept,
      bytes: cost.bytes * share,
      expansion: cost.expansion * share,
    });
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
    const { eventsTaken, bytesTaken, expansionTaken } = cost;
    this.#keep(cost, {
      events: eventTokens(eventsTaken - events),
      bytes: bytesTaken,
      expansion: Math.max(0, expansionTaken - (cost.expansion * events) / cost.events),
    });
  }

  /** Gives back what the request has taken and is not to keep. */
  #keep(cost: RequestCost, kept: KeptCost): void {
    const { eventsTaken, bytesTaken, expansionTaken } = cost;
    if (eventsTaken + bytesTaken + expansionTaken === 0) return;
    const monotonicMs = this.#monotonicMs();
    cost.eventsTaken = Math.min(eventsTaken, kept.events);
    cost.bytesTaken = Math.min(bytesTaken, kept.bytes);
    cost.expansionTaken = Math.min(expansionTaken, kept.expansion);
    this.#events?.giveBack(eventsTaken - cost.eventsTaken, monotonicMs);
    this.#bytes?.giveBack(bytesTaken - cost.bytesTaken, monotonicMs);
    this.#expansion?.giveBack(expansionTaken - cost.expansionTaken, monotonicMs);
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
  if (perSecond === undefined) return undefined;
  const burst = Math.max(perSecond * burstSeconds, burstMin);
  return { perSecond, burst, debtMax: burst };
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
