// A project in the gateway: its quota, its meter, and the lookup by key.

/** A project of the registry. Replaced, never mutated, when its registry entry changes. */
export interface Project {
  readonly id: string;
  readonly name: string;
  readonly keys: readonly string[];
  readonly enabled: boolean;
  readonly quota?: ProjectQuota | undefined;
}

/**
 * The limits that an operator sets for a project: its rates per gateway process, and its share of a
 * stream. An absent rate has no limit.
 */
export interface ProjectQuota {
  readonly eventsPerSecond?: number | undefined;
  /** Bytes of bodies, after decompression. */
  readonly bytesPerSecond?: number | undefined;
  /**
   * After a pause, the amount of this many seconds may be sent at once, or as much as an SDK sends
   * at once if that is more.
   */
  readonly burstSeconds: number;
  /** Per cent of a stream that the project may fill. Absent: the settings' value. */
  readonly streamShare?: number | undefined;
}

/** The cost of a request for its project. */
export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /** Bytes to be stored beyond a multiple of those sent; mostly 0. Set before `take`. */
  expansion: number;
}

/** Why a request exceeds its project's limits, and is refused. */
export interface MeterRefusal {
  /**
   * `expansion`: the bytes that the project may store per minute beyond a multiple of those sent.
   */
  readonly what: "events" | "bytes" | "expansion";
  /** Milliseconds until the project has room; Infinity if it never has room for the request. */
  readonly waitMs: number;
  /** The rate of the limit. */
  readonly perSecond: number;
  /** The largest request that this rate ever allows at once. */
  readonly requestMax: number;
}

/** The part of its project's limits that a request has used. */
export interface Taken {
  /**
   * Returns, once, the cost of the events that will be sent again: of all except `retained`, which
   * are stored or may be, or are not retried.
   */
  giveBack(retained: number): void;
  /**
   * Counts dropped events and events with errors of a request that ended in a 200 or a 4xx. They
   * cost the bytes of their request, but no events, and no expansion, since nothing of them is
   * stored.
   */
  countDropped(events: number): void;
}

/**
 * Limits what a project sends to this process, and counts the results. No call waits or throws.
 */
export interface ProjectMeter {
  /** Must be called once per request. A refusal because of the rate of the quota is counted. */
  take(cost: RequestCost): Taken | MeterRefusal;
  /**
   * Returns why requests of any size are refused for a while: the request counts as refused,
   * without its events. Undefined: nothing is taken or counted.
   */
  refuseUnread(bytes: number): MeterRefusal | undefined;
  /**
   * Counts events of stored frames, except duplicates, and the bytes of their lines, with any
   * answer to the request.
   */
  countStored(events: number, bytes: number): void;
  /** Counts events of frames that were sent and had no PubAck by the deadline: stored or not. */
  countUnknown(events: number): void;
}

/** A project on the hot path. The meter stays the same when the registry entry changes. */
export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
}

/** The registry on the hot path: one Map read, whatever the state of NATS. */
export interface ProjectLookup {
  /** No project is known at all, so no key can be valid. */
  readonly hasNone: boolean;
  /** Returns the project that has the key, if there is exactly one. */
  byKey(key: string): MeteredProject | undefined;
  /**
   * Returns why a key that `byKey` does not find may still be valid, as a text for the client: the
   * registry is not read, may lack projects, or has the key in several projects. Undefined: no
   * project has the key.
   */
  refusalOf(key: string): string | undefined;
}
