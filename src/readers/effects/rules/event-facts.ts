// The facts of a stored line that the rules need. Filled again for each line, whichever way the
// line is read. Spans refer to the body, which is valid JSON.

import { Buffer } from "node:buffer";
import { TokenType } from "../../../records/table.ts";
import { Kind } from "../../../records/verdict.ts";

/** One JSON value: body[start, end). If the type is Absent, the offsets are meaningless. */
export class Span {
  start = 0;
  end = 0;
  type: TokenType = TokenType.Absent;
}

/** Events with a special meaning in addition to their kind. */
export const SpecialEvent = {
  None: 0,
  /** `$merge_dangerously` */
  Merge: 1,
  /** `$exception` and `$$heatmap`, which SDKs send automatically: they set and link nothing. */
  Automatic: 2,
} as const;
export type SpecialEvent = (typeof SpecialEvent)[keyof typeof SpecialEvent];

export const specialEvents: ReadonlyMap<string, SpecialEvent> = new Map<string, SpecialEvent>([
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
  /** Contains the 36 characters of the uuid, in any case, from `uuidAt` on. */
  uuidBody: Buffer = Buffer.alloc(0);
  uuidView: DataView = new DataView(new ArrayBuffer(0));
  uuidAt = 0;
  kind: Kind = Kind.Custom;
  special: SpecialEvent = SpecialEvent.None;
  personProfile = true;
  distinctId = "";
  /**
   * The name and the distinct id. For a line exactly as the gateway writes it, the addon has hashed
   * them.
   */
  readonly event = new Span();
  readonly id = new Span();
  receivedAtMs = Number.NaN;
  /** The event's time, but never later than `receivedAtMs`. */
  timeMs = Number.NaN;
  readonly properties = new Span();
  readonly set = new Span();
  readonly setOnce = new Span();
  readonly unset = new Span();
  readonly nestedSet = new Span();
  readonly nestedSetOnce = new Span();
  readonly nestedUnset = new Span();
  /** The type of `$groups` in the properties. */
  groupsType: TokenType = TokenType.Absent;
}
