// The port through which the intake hands over the items of authenticated requests that are not
// stored as events. `gateway/quarantine` stores them in the lane `rejected`, without delaying a
// request.

import type { Buffer } from "node:buffer";
import type { ItemErrorCode } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { DropCode } from "../../platform/base/warnings.ts";

/** Why an item is in quarantine: the code of a guard, or the kind of rule that put it there. */
export type QuarantineReason = DropCode | ItemErrorCode | "rule" | "schema";

export interface QuarantinedItem {
  /** The request's body. `take` copies the item, so the buffer may be reused afterwards. */
  readonly body: Buffer;
  /** Start of the item's JSON text in `body`. */
  readonly start: number;
  readonly end: number;
  readonly reason: QuarantineReason;
  /** The explanation for an operator, such as the errors of a schema, or "". */
  readonly detail: string;
  /** The name of the rule, or the event name of the schema. */
  readonly rule?: string | undefined;
  /** The version of the project's rules. */
  readonly rulesVersion?: number | undefined;
}

/** The facts about a request that are stored with its items. */
export interface QuarantineOrigin {
  readonly projectId: string;
  readonly lane: Lane;
  /** The time of receipt, in milliseconds since 1970. */
  readonly receivedAtMs: number;
  /** Milliseconds by which the client's clock is ahead of the gateway's clock; 0 if unknown. */
  readonly skewMs: number;
  /** In the newer protocol, the JSON members of the SDK's header, or ""; else undefined. */
  readonly additions: string | undefined;
}

/** The items of one request. */
export interface RequestQuarantine {
  /** Copies an item, or counts it as lost if there is no memory for it. Never throws. */
  take(item: QuarantinedItem): void;
  /**
   * Ends the request. If `isReported`, the client receives the results, and the items are stored in
   * the background. Otherwise the client sends the request again, and the items are forgotten.
   */
  settle(isReported: boolean): void;
}

export interface QuarantineTaker {
  /** Called at the first item of a request. */
  open(origin: QuarantineOrigin): RequestQuarantine;
}

const nothingTaken: RequestQuarantine = { take: () => {}, settle: () => {} };
export const noQuarantine: QuarantineTaker = { open: () => nothingTaken };
