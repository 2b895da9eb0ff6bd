// The facts about a stored line that the rules need. The same object is used for all lines.

import { Buffer } from "node:buffer";
import { TokenType } from "../../../records/table.ts";
import { Kind } from "../../../records/verdict.ts";

export class Span {
  start = 0;
  end = 0;
  type: TokenType = TokenType.Absent;
}

export const SpecialEvent = {
  None: 0,
  Merge: 1,
  /** `$exception` or `$$heatmap`. SDKs send these events automatically, without property writes. */
  Automatic: 2,
} as const;
export type SpecialEvent = (typeof SpecialEvent)[keyof typeof SpecialEvent];

const specialEvents: ReadonlyMap<string, SpecialEvent> = new Map<string, SpecialEvent>([
  ["$merge_dangerously", SpecialEvent.Merge],
  ["$exception", SpecialEvent.Automatic],
  ["$$heatmap", SpecialEvent.Automatic],
]);
export function specialEventOf(name: string): SpecialEvent {
  return specialEvents.get(name) ?? SpecialEvent.None;
}

export class EventFacts {
  body: Buffer = Buffer.alloc(0);
  projectId = "";
  uuidBody: Buffer = Buffer.alloc(0);
  uuidView: DataView = new DataView(new ArrayBuffer(0));
  uuidAt = 0;
  kind: Kind = Kind.Custom;
  special: SpecialEvent = SpecialEvent.None;
  personProfile = true;
  distinctId = "";
  readonly event = new Span();
  readonly id = new Span();
  receivedAtMs = Number.NaN;
  timeMs = Number.NaN;
  readonly properties = new Span();
  readonly set = new Span();
  readonly setOnce = new Span();
  readonly unset = new Span();
  readonly nestedSet = new Span();
  readonly nestedSetOnce = new Span();
  readonly nestedUnset = new Span();
  groupsType: TokenType = TokenType.Absent;
}
