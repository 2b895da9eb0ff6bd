// A project as the gateway has it: its quota, its meter, and the lookup by key.

/** A project of the registry. Replaced, never mutated, when its registry entry changes. */
export interface Project {
  readonly id: string;
  readonly name: string;
  readonly keys: readonly string[];
  readonly enabled: boolean;
  readonly quota?: ProjectQuota | undefined;
}

/**
 * What an operator allows a project: what it may send to each gateway process, and how much of a
 * stream it may fill. A rate that is absent has no limit.
 */
export interface ProjectQuota {
  readonly eventsPerSecond?: number | undefined;
  /** Bytes of bodies, after decompression. */
  readonly bytesPerSecond?: number | undefined;
  /**
   * After a pause, the amount of this many seconds may come at once, or as much as an SDK sends at
   * once if that is more.
   */
  readonly burstSeconds: number;
  /** Per cent of a stream that the project may fill. Absent: that of the settings. */
  readonly streamShare?: number | undefined;
}

/** What a request costs its project. */
export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /** Bytes to be stored beyond a multiple of those sent; mostly 0. Set before `take`. */
  expansion: number;
}

/** Why a request takes nothing of its project's limits, and is refused. */
export interface MeterRefusal {
  /** `expansion` is what the project may store a minute of bytes beyond a multiple of those sent. */
  readonly what: "events" | "bytes" | "expansion";
  /** Milliseconds until the project has room; Infinity if it never has room for the request. */
  readonly waitMs: number;
  /** The rate that the limit sets. */
  readonly perSecond: number;
  /** The largest request that this rate ever lets through at once. */
  readonly requestMax: number;
}

/** What a request has taken of its project's limits. */
export interface Taken {
  /**
   * Gives back, once, the cost of the events that will be sent again: of all but `kept`, which are
   * stored or may be, or have no retry.
   */
  giveBack(kept: number): void;
  /**
   * Counts events left out or in error, of a request that ended in a 200 or a 4xx. They cost the
   * bytes of their request, but no events, and no expansion, since nothing of them is stored.
   */
  countDropped(events: number): void;
}

/**
 * Limits what a project sends to this process, and counts what becomes of it. No call waits or
 * throws.
 */
export interface ProjectMeter {
  /** To be called once for each request. A refusal for the rate of the quota is counted. */
  take(cost: RequestCost): Taken | MeterRefusal;
  /**
   * Why no request is let in for a while, however small: the one that asks counts as refused, with
   * none of its events. Undefined: nothing is taken or counted.
   */
  refuseUnread(bytes: number): MeterRefusal | undefined;
  /**
   * Counts events of stored frames, duplicates aside, and the bytes of their lines, whatever the
   * request was answered.
   */
  countStored(events: number, bytes: number): void;
  /** Counts events of frames that were sent and had no PubAck by the deadline: stored or not. */
  countUnknown(events: number): void;
}

/** A project as the hot path has it. The meter stays the same when the registry entry changes. */
export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
}

/** The registry as the hot path sees it: one Map read, whatever NATS is doing. */
export interface ProjectLookup {
  /** No project is known at all, so that no key can be right. */
  readonly hasNone: boolean;
  /** The one project that has the key, if there is exactly one. */
  byKey(key: string): MeteredProject | undefined;
  /**
   * The reason why a key that `byKey` does not know cannot be called unknown now, in words for the
   * client: the registry is not read, may lack projects, or has the key in several projects.
   * Undefined: no project has the key.
   */
  refusalOf(key: string): string | undefined;
}
