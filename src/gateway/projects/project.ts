/** If its registry entry changes, the object is replaced, never mutated. */
export interface Project {
  readonly id: string;
  readonly name: string;
  readonly keys: readonly string[];
  readonly enabled: boolean;
  readonly quota?: ProjectQuota | undefined;
}

/**
 * An operator's limits: rates per gateway process, and a share of a stream. An absent rate means no
 * limit.
 */
export interface ProjectQuota {
  readonly eventsPerSecond?: number | undefined;
  /** Maximum bytes of bodies per second, after decompression. */
  readonly bytesPerSecond?: number | undefined;
  /**
   * Seconds of the rate that may be sent at once after a pause; at least what an SDK sends at once.
   */
  readonly burstSeconds: number;
  /** Per cent of a stream that the project may fill. Default: the settings' value. */
  readonly streamShare?: number | undefined;
}

export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /** Bytes to be stored beyond a multiple of the bytes sent; usually 0. Set before `take`. */
  expansion: number;
}

/** Why a request exceeds its project's limits. */
export interface MeterRefusal {
  /** `expansion`: the bytes stored per minute beyond a multiple of the bytes sent. */
  readonly what: "events" | "bytes" | "expansion";
  /** Milliseconds until the project has room; Infinity if it never has room for the request. */
  readonly waitMs: number;
  /** The rate of the exceeded limit. */
  readonly perSecond: number;
  /** The largest request that the exceeded limit ever allows at once. */
  readonly requestMax: number;
}

export interface Taken {
  /**
   * Returns the cost of all events except `retained`, because the client will send them again.
   * `retained` are stored, may be stored, or are not retried. No cost is returned twice.
   */
  giveBack(retained: number): void;
  /**
   * Counts dropped events and events with errors of a request that was answered 200 or 4xx. They
   * cost the bytes of their request, and no events and no expansion.
   */
  countDropped(events: number): void;
}

/** Limits what a project sends to this process, and counts the results. No call waits or throws. */
export interface ProjectMeter {
  /**
   * Takes the cost of the request, or returns why the request is rejected. Must be called once per
   * request. Counts a rejection that is due to a rate of the quota.
   */
  take(cost: RequestCost): Taken | MeterRefusal;
  /**
   * Returns why requests of any size are rejected for a while, and counts the request as rejected,
   * without its events. If they are not, nothing is taken or counted.
   */
  refuseUnread(bytes: number): MeterRefusal | undefined;
  /**
   * Counts events of stored frames, except duplicates, and the bytes of their lines, whatever the
   * answer.
   */
  countStored(events: number, bytes: number): void;
  /** Counts events of frames without a PubAck by the deadline, which may be stored or not. */
  countUnknown(events: number): void;
}

export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
}

/** The lookup of projects on the hot path: one Map read, in any state of NATS. */
export interface ProjectLookup {
  /** Whether no project is known at all, so that no key can be valid. */
  readonly hasNone: boolean;
  /** Returns the project that has the key; undefined if no project or more than one has it. */
  byKey(key: string): MeteredProject | undefined;
  /**
   * Returns why a key that `byKey` does not find may still be valid, as a text for the client;
   * undefined if no project has the key.
   */
  refusalOf(key: string): string | undefined;
}
