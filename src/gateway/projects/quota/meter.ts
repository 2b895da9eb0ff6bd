// The meter of one project in this process. It enforces the quota with token buckets, and counts
// usage for the usage record.

import { expansionBytesAMinute } from "../../../platform/base/errors.ts";
import type { MeterRefusal, ProjectMeter, ProjectQuota, RequestCost, Taken } from "../project.ts";

export interface Counts {
  readonly accepted: number;
  readonly storedBytes: number;
  readonly unknown: number;
  readonly dropped: number;
  readonly rateLimitedRequests: number;
  readonly rateLimitedEvents: number;
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
 * An SDK can send this much in one request, so even a low quota accepts every client's requests.
 */
export const burstEventsMin = 100;
export const burstBytesMin = 65_536;

interface Rate {
  readonly perSecond: number;
  readonly burst: number;
  readonly debtMax: number;
}

/**
 * If a project must wait longer than this, it is far over its quota. Its bodies are then rejected
 * without a scan.
 */
const farOverMs = 100;

const expansionRate: Rate = {
  perSecond: expansionBytesAMinute / 60,
  burst: expansionBytesAMinute,
  debtMax: 0,
};

/**
 * A request may take more tokens than there are, if there is at least one. The resulting debt is
 * limited, so that one request cannot block a project for hours.
 */
class TokenBucket {
  #rate: Rate;
  #level: number;
  #filledMonotonicMs: number;

  constructor(rate: Rate, monotonicMs: number) {
    this.#rate = rate;
    this.#level = rate.burst;
    this.#filledMonotonicMs = monotonicMs;
  }

  /**
   * The tokens and the debt do not change, so that a change of the rate does not allow a second
   * burst.
   */
  change(rate: Rate, monotonicMs: number): void {
    this.#fill(monotonicMs);
    this.#rate = rate;
    this.#level = Math.max(-rate.debtMax, Math.min(this.#level, rate.burst));
  }

  get requestMax(): number {
    return this.#rate.burst + this.#rate.debtMax;
  }

  get perSecond(): number {
    return this.#rate.perSecond;
  }

  get isEmpty(): boolean {
    return this.#level <= 0;
  }

  /**
   * Returns the number of milliseconds until `tokens` can be taken without exceeding the allowed
   * debt. 0 means that they can be taken now.
   */
  waitMs(tokens: number, monotonicMs: number): number {
    this.#fill(monotonicMs);
    const due = Math.max(0, tokens - this.#rate.debtMax);
    return this.#level > 0 && this.#level >= due
      ? 0
      : Math.max(1, ((due - this.#level) / this.#rate.perSecond) * 1_000);
  }

  take(tokens: number): number {
    this.#level -= tokens;
    return tokens;
  }

  giveBack(tokens: number, monotonicMs: number): void {
    this.#fill(monotonicMs);
    if (tokens > 0) this.#level = Math.min(this.#rate.burst, this.#level + tokens);
  }

  #fill(monotonicMs: number): void {
    const { burst, perSecond } = this.#rate;
    const refilled = ((monotonicMs - this.#filledMonotonicMs) / 1_000) * perSecond;
    this.#filledMonotonicMs = monotonicMs;
    this.#level = Math.min(burst, this.#level + refilled);
  }
}

export class Meter implements ProjectMeter {
  /**
   * The number of this meter. It is 0 for the first meter of the project, and higher if earlier
   * meters were evicted.
   */
  readonly series: number;
  readonly #monotonicMs: () => number;
  #events: TokenBucket | undefined = undefined;
  #bytes: TokenBucket | undefined = undefined;
  #expansion: TokenBucket | undefined = undefined;
  #portions = new Portions();
  #isOverBytes = false;
  readonly #counts: { -readonly [Name in keyof Counts]: number } = { ...noCounts };
  /** The ticket of all requests that no limit applies to. */
  readonly #nothingTaken: Taken;

  constructor(monotonicMs: () => number, series = 0) {
    this.#monotonicMs = monotonicMs;
    this.series = series;
    const nothing = { events: 0, bytes: 0, expansion: 0 };
    this.#nothingTaken = new Ticket(this, { ...nothing, events: 1 }, nothing);
  }

  setQuota({ eventsPerSecond, bytesPerSecond, burstSeconds }: ProjectQuota = noQuota): void {
    this.#events = this.#bucketOf(
      this.#events,
      rateOf(eventsPerSecond, burstSeconds, burstEventsMin),
    );
    this.#bytes = this.#bucketOf(this.#bytes, rateOf(bytesPerSecond, burstSeconds, burstBytesMin));
    this.#portions = new Portions();
  }

  #bucketOf(bucket: TokenBucket | undefined, rate: Rate | undefined): TokenBucket | undefined {
    if (rate === undefined) return undefined;
    if (bucket === undefined) return new TokenBucket(rate, this.#monotonicMs());
    bucket.change(rate, this.#monotonicMs());
    return bucket;
  }

  take(cost: RequestCost): Taken | MeterRefusal {
    const refusal =
      tooLarge("events", this.#events, cost.events) ??
      tooLarge("bytes", this.#bytes, cost.bytes) ??
      this.#expansionRefusal(cost.expansion);
    if (refusal !== undefined) return refusal;
    const waitMs = this.#quotaWaitMs(cost);
    if (waitMs > 0) {
      this.#counts.rateLimitedRequests++;
      this.#counts.rateLimitedEvents += cost.events;
      this.#counts.rateLimitedBytes += cost.bytes;
      return this.#rateRefusal(waitMs);
    }
    if (this.#events === undefined && this.#bytes === undefined && cost.expansion === 0)
      return this.#nothingTaken;
    return new Ticket(this, cost, {
      events: this.#events?.take(eventTokens(cost.events)) ?? 0,
      bytes: this.#bytes?.take(cost.bytes) ?? 0,
      expansion: cost.expansion > 0 ? this.#expansion!.take(cost.expansion) : 0,
    });
  }

  refuseUnread(bytes: number): MeterRefusal | undefined {
    const monotonicMs = this.#monotonicMs();
    const leastMs = Math.max(
      this.#events?.waitMs(1, monotonicMs) ?? 0,
      this.#bytes?.waitMs(1, monotonicMs) ?? 0,
    );
    if (leastMs < farOverMs) return undefined;
    this.#counts.rateLimitedRequests++;
    this.#counts.rateLimitedBytes += bytes;
    return this.#rateRefusal(this.#quotaWaitMs({ events: 1, bytes }));
  }

  #expansionRefusal(bytes: number): MeterRefusal | undefined {
    if (bytes === 0) return undefined;
    const monotonicMs = this.#monotonicMs();
    this.#expansion ??= new TokenBucket(expansionRate, monotonicMs);
    const never = tooLarge("expansion", this.#expansion, bytes);
    if (never !== undefined) return never;
    const waitMs = this.#expansion.waitMs(bytes, monotonicMs);
    return waitMs === 0 ? undefined : refusalBy("expansion", this.#expansion, waitMs);
  }

  #quotaWaitMs({ events, bytes }: Pick<RequestCost, "events" | "bytes">): number {
    if (this.#events === undefined && this.#bytes === undefined) return 0;
    const monotonicMs = this.#monotonicMs();
    const eventsMs = this.#events?.waitMs(eventTokens(events), monotonicMs) ?? 0;
    const bytesMs = this.#bytes?.waitMs(bytes, monotonicMs) ?? 0;
    if (eventsMs + bytesMs > 0) this.#isOverBytes = bytesMs > eventsMs;
    if (this.#events?.isEmpty || this.#bytes?.isEmpty) this.#portions.refused(monotonicMs);
    return Math.max(eventsMs, bytesMs, this.#portions.waitMs(monotonicMs));
  }

  #rateRefusal(waitMs: number): MeterRefusal {
    const what = this.#isOverBytes || this.#events === undefined ? "bytes" : "events";
    return refusalBy(what, (what === "bytes" ? this.#bytes : this.#events)!, waitMs);
  }

  giveBack({ events, bytes, expansion }: Tokens): void {
    if (events + bytes + expansion === 0) return;
    const monotonicMs = this.#monotonicMs();
    this.#events?.giveBack(events, monotonicMs);
    this.#bytes?.giveBack(bytes, monotonicMs);
    this.#expansion?.giveBack(expansion, monotonicMs);
  }

  countStored(events: number, bytes: number): void {
    this.#counts.accepted += events;
    this.#counts.storedBytes += bytes;
  }

  countUnknown(events: number): void {
    this.#counts.unknown += events;
  }

  countDropped(events: number): void {
    this.#counts.dropped += events;
  }

  get counts(): Counts {
    return { ...this.#counts };
  }
}

interface Tokens {
  events: number;
  bytes: number;
  expansion: number;
}

class Ticket implements Taken {
  readonly #meter: Meter;
  readonly #cost: RequestCost;
  readonly #taken: Tokens;

  constructor(meter: Meter, cost: RequestCost, taken: Tokens) {
    this.#meter = meter;
    this.#cost = cost;
    this.#taken = taken;
  }

  giveBack(retained: number): void {
    const { events, bytes, expansion } = this.#cost;
    const part = retained === 0 ? 0 : retained / events;
    this.#retain({ events: retained, bytes: bytes * part, expansion: expansion * part });
  }

  countDropped(events: number): void {
    this.#meter.countDropped(events);
    this.countFiltered(events);
  }

  countFiltered(events: number): void {
    const { events: ofAll, expansion } = this.#cost;
    const taken = this.#taken;
    this.#retain({
      events: eventTokens(taken.events - events),
      bytes: taken.bytes,
      expansion: taken.expansion - (expansion * events) / Math.max(1, ofAll),
    });
  }

  #retain({ events, bytes, expansion }: Tokens): void {
    const taken = this.#taken;
    const rest = {
      events: Math.min(taken.events, Math.max(0, taken.events - events)),
      bytes: Math.min(taken.bytes, Math.max(0, taken.bytes - bytes)),
      expansion: Math.min(taken.expansion, Math.max(0, taken.expansion - expansion)),
    };
    taken.events -= rest.events;
    taken.bytes -= rest.bytes;
    taken.expansion -= rest.expansion;
    this.#meter.giveBack(rest);
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

function tooLarge(
  what: MeterRefusal["what"],
  bucket: TokenBucket | undefined,
  tokens: number,
): MeterRefusal | undefined {
  if (bucket === undefined || tokens <= bucket.requestMax) return undefined;
  return refusalBy(what, bucket, Number.POSITIVE_INFINITY);
}

function refusalBy(
  what: MeterRefusal["what"],
  { perSecond, requestMax }: TokenBucket,
  waitMs: number,
): MeterRefusal {
  return { what, waitMs, perSecond, requestMax };
}

function eventTokens(events: number): number {
  return Math.max(events, 1);
}

/**
 * The requests of a flood are admitted in groups, with one group per interval of this length.
 * Otherwise, each request would need its own frame and fsync.
 */
export const portionMs = 25;
/** This number of rejections in an interval, about 300 per second, counts as a flood. */
export const refusalsOfFlood = 8;

class Portions {
  #sinceMonotonicMs = Number.NEGATIVE_INFINITY;
  #refusals = 0;

  waitMs(monotonicMs: number): number {
    if (this.#refusals < refusalsOfFlood) return 0;
    return Math.max(0, this.#sinceMonotonicMs + portionMs - monotonicMs);
  }

  refused(monotonicMs: number): void {
    if (monotonicMs - this.#sinceMonotonicMs < portionMs) {
      this.#refusals++;
      return;
    }
    this.#sinceMonotonicMs = monotonicMs;
    this.#refusals = 1;
  }
}

export interface KnownMeter {
  readonly projectId: string;
  readonly meter: Meter;
}

const deletedMaxDefault = 1_000;

export class Meters {
  readonly #monotonicMs: () => number;
  readonly #deletedMax: number;
  readonly #meters = new Map<string, Meter>();
  readonly #deleted = new Set<string>();
  #evicted: KnownMeter[] = [];
  #evictions = 0;

  constructor({
    monotonicMs,
    deletedMax = deletedMaxDefault,
  }: { monotonicMs: () => number; deletedMax?: number }) {
    this.#monotonicMs = monotonicMs;
    this.#deletedMax = deletedMax;
  }

  of(projectId: string): Meter {
    this.#deleted.delete(projectId);
    const known = this.#meters.get(projectId);
    if (known !== undefined) return known;
    const meter = new Meter(this.#monotonicMs, this.#evictions);
    this.#meters.set(projectId, meter);
    return meter;
  }

  leave(projectId: string): void {
    if (this.#meters.has(projectId)) this.#deleted.add(projectId);
    if (this.#deleted.size <= this.#deletedMax) return;
    const [longestDeleted = ""] = this.#deleted;
    this.#deleted.delete(longestDeleted);
    this.#evictions++;
    this.#evicted.push({ projectId: longestDeleted, meter: this.#meters.get(longestDeleted)! });
    this.#meters.delete(longestDeleted);
  }

  takeEvicted(): readonly KnownMeter[] {
    const evicted = this.#evicted;
    this.#evicted = [];
    return evicted;
  }

  *all(): Generator<KnownMeter> {
    for (const [projectId, meter] of this.#meters) yield { projectId, meter };
  }
}
