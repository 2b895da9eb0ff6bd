import type { CompiledRules } from "../../rules/compile.ts";

/** If the entry of a project changes, a new object replaces this one. It is never modified. */
export interface Project {
  readonly id: string;
  readonly name: string;
  readonly keys: readonly string[];
  readonly enabled: boolean;
  readonly quota?: ProjectQuota | undefined;
  /** The version of its rules; undefined if the project has no rules. */
  readonly rulesVersion?: number | undefined;
}

/**
 * The limits of a project: its rates in each gateway process, and its share of a stream. If a rate
 * is absent, it is unlimited.
 */
export interface ProjectQuota {
  readonly eventsPerSecond?: number | undefined;
  readonly bytesPerSecond?: number | undefined;
  /** A project that sends less than its rate can save this many seconds of its rate for later. */
  readonly burstSeconds: number;
  readonly streamShare?: number | undefined;
}

export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /**
   * The number of bytes to store that exceed the allowed multiple of the sent bytes. It must be set
   * before `take`.
   */
  expansion: number;
}

export interface MeterRefusal {
  readonly what: "events" | "bytes" | "expansion";
  readonly waitMs: number;
  readonly perSecond: number;
  readonly requestMax: number;
}

export interface Taken {
  /**
   * Refunds the cost of the events that the client will retry. `retained` is the number of events
   * that it will not retry. Only the first call has an effect.
   */
  giveBack(retained: number): void;
  countDropped(events: number): void;
  /** Like `countDropped`, but for events that the project's own rules do not store. */
  countFiltered(events: number): void;
}

/** Enforces a project's limits in this process, and counts its results. Never waits or throws. */
export interface ProjectMeter {
  /**
   * Takes the cost of a request. If a limit is exceeded, counts a rejection and returns it. Must be
   * called once per request.
   */
  take(cost: RequestCost): Taken | MeterRefusal;
  /**
   * If the project may currently send nothing, counts a rejection and returns it. Call this before
   * the body is read.
   */
  refuseUnread(bytes: number): MeterRefusal | undefined;
  countStored(events: number, bytes: number): void;
  countUnknown(events: number): void;
}

export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
  /** The rules for its events; undefined if it has none. Replaced as a whole, never mutated. */
  readonly rules?: CompiledRules | undefined;
}

/** The lookup of projects on the hot path. It reads one Map, so it also works without NATS. */
export interface ProjectLookup {
  readonly hasNone: boolean;
  /** Returns undefined if no project has the key, or if several projects have it. */
  byKey(key: string): MeteredProject | undefined;
  refusalOf(key: string): string | undefined;
}
