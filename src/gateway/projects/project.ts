import type { CompiledRules } from "../../rules/compile.ts";

/** A project of the registry. If its entry changes, the object is replaced, never mutated. */
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
  /** Maximum bytes of bodies per second, after decompression. */
  readonly bytesPerSecond?: number | undefined;
  /** Seconds for which unused rate accumulates. The project may then use it in one burst. */
  readonly burstSeconds: number;
  /** Per cent of a stream that the project may fill. Default: the settings' value. */
  readonly streamShare?: number | undefined;
}

export interface RequestCost {
  readonly events: number;
  readonly bytes: number;
  /** Bytes to store beyond the allowed multiple of the sent bytes; usually 0. Set before `take`. */
  expansion: number;
}

export interface MeterRefusal {
  /** The exceeded limit. `expansion`: the bytes that a project may store beyond what it sent. */
  readonly what: "events" | "bytes" | "expansion";
  /** Milliseconds until the request fits; Infinity if it never fits. */
  readonly waitMs: number;
  readonly perSecond: number;
  /** Size of the largest request that the exceeded limit can ever allow. */
  readonly requestMax: number;
}

export interface Taken {
  /**
   * Refunds, once, the cost of the events that the client will send again. Does not refund the
   * `retained` events, which are stored, may be stored, or are not retried.
   */
  giveBack(retained: number): void;
  /** Counts events that are not stored and not retried. Such events cost only their bytes. */
  countDropped(events: number): void;
  /** Like `countDropped`, but for events that the project's own rules do not store. */
  countFiltered(events: number): void;
}

/** Limits what a project sends to this process, and counts the results. No call waits or throws. */
export interface ProjectMeter {
  /** Takes the cost of a request, or counts and returns its rejection. Called once per request. */
  take(cost: RequestCost): Taken | MeterRefusal;
  /** If requests of any size are rejected, counts this request and returns the reason. */
  refuseUnread(bytes: number): MeterRefusal | undefined;
  /** Counts events of stored frames, except duplicates, and the bytes of their lines. */
  countStored(events: number, bytes: number): void;
  /** Counts events that had no PubAck by the deadline, and may be stored or not. */
  countUnknown(events: number): void;
}

export interface MeteredProject extends Project {
  readonly meter: ProjectMeter;
  /** The rules for its events; undefined if it has none. Replaced as a whole, never mutated. */
  readonly rules?: CompiledRules | undefined;
}

/** The lookup of projects on the hot path. It is one Map read, in any state of NATS. */
export interface ProjectLookup {
  /** Whether no project is known at all, so that no key can be valid. */
  readonly hasNone: boolean;
  /** Returns the project that has the key; undefined if no project or several projects have it. */
  byKey(key: string): MeteredProject | undefined;
  /** Returns why a key that `byKey` does not find may still be valid, as a text for the client. */
  refusalOf(key: string): string | undefined;
}
