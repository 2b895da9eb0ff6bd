// The stored form of a rejected item: one line of JSON. A message of a stream of the lane `rejected`
// has lines of one project. The item is a string with the text that the client sent, because
// parsing it could change it: long numbers, repeated names, white space.

import { objectIn } from "../../platform/base/json.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type {
  QuarantinedItem,
  QuarantineOrigin,
  QuarantineReason,
} from "../intake/quarantine-port.ts";

/** A line, as stored. The names are part of the stored format. */
export interface RejectedItem {
  /** A UUID of version 7. A replay gives it to an event without a uuid. */
  readonly id: string;
  readonly project_id: string;
  /** The time of receipt, in ISO 8601. */
  readonly received_at: string;
  /** The lane of the request. */
  readonly lane: Lane;
  readonly reason: QuarantineReason;
  /** The explanation that the client received, or the errors of a schema; may be absent. */
  readonly detail?: string;
  /** The name of the rule, or the event name of the schema. */
  readonly rule?: string;
  /** The version of the project's rules. */
  readonly rules?: number;
  /** Milliseconds by which the client's clock was ahead; absent if unknown. */
  readonly skew_ms?: number;
  /** Only in the newer protocol (v1): the SDK's name and version from the header. */
  readonly sdk?: Readonly<Record<string, unknown>>;
  /** The JSON text of the item. */
  readonly item: string;
}

/** Maximum characters of a detail. */
export const detailCharactersMax = 1_024;

/** Returns the line, with its line feed. */
export function lineOf(
  { projectId, lane, receivedAtMs, skewMs, additions }: QuarantineOrigin,
  { body, start, end, reason, detail, rule, rulesVersion }: QuarantinedItem,
  id: string,
): string {
  const line: RejectedItem = {
    id,
    project_id: projectId,
    received_at: new Date(receivedAtMs).toISOString(),
    lane,
    reason,
    ...(detail === "" ? {} : { detail: detail.slice(0, detailCharactersMax) }),
    ...(rule === undefined ? {} : { rule }),
    ...(rulesVersion === undefined ? {} : { rules: rulesVersion }),
    ...(skewMs === 0 ? {} : { skew_ms: skewMs }),
    ...(additions === undefined ? {} : { sdk: objectIn(`{${additions}}`) ?? {} }),
    item: body.toString("utf8", start, end),
  };
  return `${JSON.stringify(line)}\n`;
}

/** Returns the lines of a message. Skips lines in another form, such as those of later releases. */
export function linesOf(text: string): RejectedItem[] {
  return text.split("\n").flatMap((line) => {
    const read = line === "" ? undefined : readLine(line);
    return read === undefined ? [] : [read];
  });
}

function readLine(line: string): RejectedItem | undefined {
  const value = objectIn(line);
  const texts = ["id", "project_id", "received_at", "lane", "reason", "item"];
  return value !== undefined && texts.every((name) => typeof value[name] === "string")
    ? (value as unknown as RejectedItem)
    : undefined;
}
