// A project in the gateway: its quota, its meter, and the lookup by key.

/**
 * A project of the registry. If its registry entry changes, the object is replaced, never mutated.
 */
export interface Project {
  readonly id: string;
  readonly name: string;
  readonly keys: readonly string[];
  readonly enabled: boolean;
  readonly quota?: ProjectQuota | undefined;
}

/**
 * The limits that an operator sets for a project: its rates per gateway process, and its share of a
 * stream. An absent rate means no limit.
 */
export interface ProjectQuota {
  readonly eventsPerSecond?: number | undefined;
  /** Maximum bytes of bodies per second, after decompression. */
  readonly bytesPerSecond?: number | undefined;
  /**
   * Seconds of the rate that may be sent at once after a pause. The burst is never less than an SDK
   * sends at once.
   */
  readonly burstSeconds: number;
  /** Per cent of a stream that the project may fill. Default: the settings' value. */
  readonly streamShare?: number | undefined;
}

/** The cost of a request for its project. */
export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /** Bytes to be stored beyond a multiple of the bytes sent; usually 0. Set before `take`. */
  expansion: number;
}

/** Why a request exceeds its project's limits, and is refused. */
export interface MeterRefusal {
  /**
   * The exceeded limit. `expansion`: the bytes that the project may store per minute beyond a
   * multiple of the bytes sent.
   */
  readonly what: "events" | "bytes" | "expansion";
  /** Milliseconds until the project has room; Infinity if it never has room for the request. */
  readonly waitMs: number;
  /** The rate of the exceeded limit. */
  readonly perSecond: number;
  /** The size of the largest request that the exceeded limit ever allows at once. */
  readonly requestMax: number;
}

/** The part of a project's limits that a request has used. */
export interface Taken {
  /**
   * Returns the cost of all events except `retained` to the project's limits, because the client
   * will send those events again. `retained`: the number of events that are stored, may be stored,
   * or are not retried. No cost is returned twice.
   */
  giveBack(retained: number): void;
  /**
   * Counts dropped events and events with errors of a request that was answered 200 or 4xx. They
   * cost the bytes of their request. They cost no events and no expansion, because they are not
   * stored.
   */
  countDropped(events: number): void;
}

/**
 * Limits what a project sends to this process, and counts the results. No call waits or throws.
 */
export interface ProjectMeter {
  /**
   * Takes the cost of the request, or returns why the request is refused. Must be called once per
   * request. Counts a refusal that is due to a rate of the quota.
   */
  take(cost: RequestCost): Taken | MeterRefusal;
  /**
   * Returns why requests of any size are refused for a while, and counts the request as refused,
   * without its events. Returns undefined if they are not refused; then nothing is taken or
   * counted.
   */
  refuseUnread(bytes: number): MeterRefusal | undefined;
  /**
   * Counts events of stored frames, except duplicates, and the bytes of their lines. The answer to
   * the request does not matter.
   */
  countStored(events: number, bytes: number): void;
  /**
   * Counts events of frames that were sent and had no PubAck by the deadline, and so may be stored
   * or not.
   */
  countUnknown(events: number): void;
}

/** A project on the hot path. The meter stays the same when the registry entry changes. */
export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
}

/** The lookup of projects on the hot path. A lookup takes one Map read, in any state of NATS. */
export interface ProjectLookup {
  /** Whether no project is known at all, so that no key can be valid. */
  readonly hasNone: boolean;
  /** Returns the project that has the key; undefined if no project or more than one has it. */
  byKey(key: string): MeteredProject | undefined;
  /**
   * Returns why a key that `byKey` does not find may still be valid, as a text for the client: the
   * registry is not read, may lack projects, or has the key in several projects. Returns undefined
   * if no project has the key.
   */
  refusalOf(key: string): string | undefined;
}
