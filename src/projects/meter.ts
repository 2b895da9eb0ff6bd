// What one project has sent to this process: token buckets that hold it against its limits, and counts for its usage record.
// Plain numbers: a request costs a few additions, no timer, no memory. Must not know requests or NATS.

import type { ProjectLimits, ProjectMeter } from "../types.ts";

/** What a project's requests have come to, in this process. */
export interface Counts {
  /** Events that are stored. */
  readonly accepted: number;
  /** Events dropped silently and events in error. */
  readonly dropped: number;
  readonly rateLimitedRequests: number;
  readonly rateLimitedEvents: number;
  /** Of bodies, after decompression. */
  readonly rateLimitedBytes: number;
}

/**
 * Tokens that come back at a rate, up to a burst. Whoever comes while there is one may take more than there are: the debt is paid off
 * before the next, so that a request larger than the burst gets through, and the rate still holds.
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
    this.#level = Math.min(this.#level, this.#burst);
  }

  /** 0 while there is a token, else how long until there is one, at least 1. */
  waitMs(nowMs: number): number {
    const elapsedMs = nowMs - this.#atMs;
    this.#atMs = nowMs;
    // A clock that went back gives nothing, and takes nothing.
    if (elapsedMs > 0) this.#level = Math.min(this.#burst, this.#level + elapsedMs * this.#perMs);
    return this.#level > 0 ? 0 : Math.max(1, -this.#level / this.#perMs);
  }

  take(tokens: number): void {
    this.#level -= tokens;
  }

  /** Never above the burst, whatever has come back by itself in the meantime. */
  giveBack(tokens: number, nowMs: number): void {
    this.waitMs(nowMs);
    this.#level = Math.min(this.#burst, this.#level + tokens);
  }
}

export class Meter implements ProjectMeter {
  readonly #nowMs: () => number;
  #events: TokenBucket | undefined = undefined;
  #bytes: TokenBucket | undefined = undefined;
  #accepted = 0;
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

  admit(events: number, bytes: number): number {
    if (this.#events === undefined && this.#bytes === undefined) return 0;
    const nowMs = this.#nowMs();
    const waitMs = Math.max(this.#events?.waitMs(nowMs) ?? 0, this.#bytes?.waitMs(nowMs) ?? 0);
    if (waitMs > 0) {
      this.#rateLimitedRequests++;
      this.#rateLimitedEvents += events;
      this.#rateLimitedBytes += bytes;
      return waitMs;
    }
    this.#events?.take(eventTokens(events));
    this.#bytes?.take(bytes);
    return 0;
  }

  giveBack(events: number, bytes: number): void {
    if (this.#events === undefined && this.#bytes === undefined) return;
    const nowMs = this.#nowMs();
    this.#events?.giveBack(eventTokens(events), nowMs);
    this.#bytes?.giveBack(bytes, nowMs);
  }

  countAccepted(events: number): void {
    this.#accepted += events;
  }

  countDropped(events: number): void {
    this.#dropped += events;
  }

  get counts(): Counts {
    return {
      accepted: this.#accepted,
      dropped: this.#dropped,
      rateLimitedRequests: this.#rateLimitedRequests,
      rateLimitedEvents: this.#rateLimitedEvents,
      rateLimitedBytes: this.#rateLimitedBytes,
    };
  }
}

/** A request without events is work too. */
function eventTokens(events: number): number {
  return Math.max(events, 1);
}
