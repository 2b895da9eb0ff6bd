// What one project has sent to this process: token buckets that hold it against its limits, and counts for its usage record.
// Plain numbers: a request costs a few additions, no timer, no memory. Must not know requests or NATS.

import type { ProjectLimits, ProjectMeter, RequestCost } from "../types.ts";

/** What a project's requests have come to, in this process. */
export interface Counts {
  /** Events that are stored, also of requests that were answered 503 for others of their events. */
  readonly accepted: number;
  /** Of their lines. */
  readonly storedBytes: number;
  /** Events that were sent and not acknowledged in time: stored or not. */
  readonly unknown: number;
  /** Events dropped silently and events in error. */
  readonly dropped: number;
  readonly rateLimitedRequests: number;
  readonly rateLimitedEvents: number;
  /** Of bodies, after decompression. */
  readonly rateLimitedBytes: number;
}

/**
 * Tokens that come back at a rate, up to a burst. Whoever comes while there is one may take more than there are: the debt is paid off
 * before the next, so that a request larger than the burst gets through. The debt is a burst at most: keys are public, and one request
 * of a stranger must not shut a project out for hours.
 */
class TokenBucket {
  #perMs: number;
  #burst: number;
  #level: number;
  #atMs: number;

  constructor(perSecond: number, burstSeconds: number, nowMs: number) {
    this.#perMs = perSecond / 1_000;
    this.#burst = perSecond * burstSeconds;
    this.#level = this.#burst;
    this.#atMs = nowMs;
  }

  /** Tokens and debt stay, so that a change of limits gives nobody a second burst. */
  change(perSecond: number, burstSeconds: number, nowMs: number): void {
    this.waitMs(nowMs);
    this.#perMs = perSecond / 1_000;
    this.#burst = perSecond * burstSeconds;
    this.#level = Math.max(-this.#burst, Math.min(this.#level, this.#burst));
  }

  get burst(): number {
    return this.#burst;
  }

  /** 0 while there is a token, else how long until there is one, at least 1. */
  waitMs(nowMs: number): number {
    const elapsedMs = nowMs - this.#atMs;
    this.#atMs = nowMs;
    // A clock that went back gives nothing, and takes nothing.
    if (elapsedMs > 0) this.#level = Math.min(this.#burst, this.#level + elapsedMs * this.#perMs);
    return this.#level > 0 ? 0 : Math.max(1, -this.#level / this.#perMs);
  }

  /** Answers how many were taken. */
  take(tokens: number): number {
    const taken = Math.min(tokens, this.#level + this.#burst);
    this.#level -= taken;
    return taken;
  }

  /** Never above the burst, whatever has come back by itself in the meantime. */
  giveBack(tokens: number, nowMs: number): void {
    this.waitMs(nowMs);
    if (tokens > 0) this.#level = Math.min(this.#burst, this.#level + tokens);
  }
}

/**
 * A request may be so many bursts. With a debt of one burst at the most, larger ones would make the rate a matter of how much fits into
 * a request; but what SDKs send at once passes however small the burst is.
 */
const burstsARequestMax = 10;
const requestEventsMin = 1_000;
const requestBytesMin = 1_048_576;

export class Meter implements ProjectMeter {
  readonly #nowMs: () => number;
  #events: TokenBucket | undefined = undefined;
  #bytes: TokenBucket | undefined = undefined;
  #stored = 0;
  #storedBytes = 0;
  #unknown = 0;
  #dropped = 0;
  #rateLimitedRequests = 0;
  #rateLimitedEvents = 0;
  #rateLimitedBytes = 0;

  /** `nowMs`: monotonic milliseconds; read only where there are limits. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** From now on these limits hold. The same ones again change nothing. */
  limit(limits: ProjectLimits | undefined): void {
    this.#events = this.#bucketOf(this.#events, limits?.eventsPerSecond, limits?.burstSeconds);
    this.#bytes = this.#bucketOf(this.#bytes, limits?.bytesPerSecond, limits?.burstSeconds);
  }

  #bucketOf(bucket: TokenBucket | undefined, perSecond?: number, burstSeconds = 0): TokenBucket | undefined {
    if (perSecond === undefined) return undefined;
    if (bucket === undefined) return new TokenBucket(perSecond, burstSeconds, this.#nowMs());
    bucket.change(perSecond, burstSeconds, this.#nowMs());
    return bucket;
  }

  admit(cost: RequestCost): number {
    if (this.#events === undefined && this.#bytes === undefined) return 0;
    const nowMs = this.#nowMs();
    const waitMs = Math.max(this.#events?.waitMs(nowMs) ?? 0, this.#bytes?.waitMs(nowMs) ?? 0);
    if (waitMs > 0) {
      this.#rateLimitedRequests++;
      this.#rateLimitedEvents += cost.events;
      this.#rateLimitedBytes += cost.bytes;
      return waitMs;
    }
    if (this.#events !== undefined) cost.eventsTaken = this.#events.take(eventTokens(cost.events));
    if (this.#bytes !== undefined) cost.bytesTaken = this.#bytes.take(cost.bytes);
    return 0;
  }

  exceeds({ events, bytes }: RequestCost): "events" | "bytes" | undefined {
    if (isTooLarge(this.#events, events, requestEventsMin)) return "events";
    return isTooLarge(this.#bytes, bytes, requestBytesMin) ? "bytes" : undefined;
  }

  giveBack({ events, bytes, eventsTaken, bytesTaken }: RequestCost, kept: number): void {
    if (this.#events === undefined && this.#bytes === undefined) return;
    const nowMs = this.#nowMs();
    this.#events?.giveBack(eventsTaken - kept, nowMs);
    this.#bytes?.giveBack(kept === 0 ? bytesTaken : bytesTaken - (bytes * kept) / events, nowMs);
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
    this.#events?.giveBack(cost.eventsTaken - eventTokens(cost.events - events), this.#nowMs());
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

function isTooLarge(bucket: TokenBucket | undefined, tokens: number, least: number): boolean {
  return bucket !== undefined && tokens > Math.max(least, bucket.burst * burstsARequestMax);
}

/** A request without events is work too. */
function eventTokens(events: number): number {
  return Math.max(events, 1);
}
