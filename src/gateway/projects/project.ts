/** If the entry of a project changes, the object is replaced, never mutated. */
import type { CompiledRules } from "../../rules/compile.ts";

export interface Project {
  readonly id: string;
  readonly name: string;
  readonly keys: readonly string[];
  readonly enabled: boolean;
  readonly quota?: ProjectQuota | undefined;
  /** The version of its rules; undefined if the project has no rules. */
  readonly rulesVersion?: number | undefined;
}

/** Rates per gateway process, and a share of a stream. An absent rate means no limit. */
export interface ProjectQuota {
  readonly eventsPerSecond?: number | undefined;
  readonly bytesPerSecond?: number | undefined;
  /** Duration for which unused rate accumulates. */
  readonly burstSeconds: number;
  readonly streamShare?: number | undefined;
}

export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /** Bytes to store beyond the allowed multiple of the sent bytes. Set before `take`. */
  expansion: number;
}

export interface MeterRefusal {
  readonly what: "events" | "bytes" | "expansion";
  readonly waitMs: number;
  readonly perSecond: number;
  readonly requestMax: number;
}

export interface Taken {
  /** Refunds, once, the cost of the events that the client will retry: all except `retained`. */
  giveBack(retained: number): void;
  countDropped(events: number): void;
  /** Like `countDropped`, but for events that the project's own rules do not store. */
  countFiltered(events: number): void;
}

/** Limits what a project sends to this process, and counts the results. No call waits or throws. */
export interface ProjectMeter {
  /** Takes the cost of a request, or counts and returns its rejection. Called once per request. */
  take(cost: RequestCost): Taken | MeterRefusal;
  /** Counts and rejects the request if requests of any size are rejected. */
  refuseUnread(bytes: number): MeterRefusal | undefined;
  countStored(events: number, bytes: number): void;
  countUnknown(events: number): void;
}

export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
  /** The rules for its events; undefined if it has none. Replaced as a whole, never mutated. */
  readonly rules?: CompiledRules | undefined;
}

/** The lookup of projects on the hot path. It is one Map read, in any state of NATS. */
export interface ProjectLookup {
  readonly hasNone: boolean;
  /** Returns undefined if no project or several projects have the key. */
  byKey(key: string): MeteredProject | undefined;
  refusalOf(key: string): string | undefined;
}
