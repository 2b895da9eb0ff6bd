// Searches the first and last bytes of a body for its probable project and lane. Until the scan,
// the body is queued by these values. The scan may find other values, because a key with precedence
// may come later.

import type { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import {
  endOfValue,
  type MemberSpan,
  type ObjectSpan,
  spaceEnd,
  spaceStart,
  startOfValue,
  stringStart,
  walkMembers,
} from "../../platform/base/json-bytes.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { BodyHint, Peek } from "../http/port.ts";
import type { ProjectLookup } from "../projects/project.ts";
import { withoutMark } from "./work.ts";

export const peekedBytesMax = 4_096;
const peekedFromEndBytesMax = 1_024;
const keyBytesMax = 256;

class Seen {
  apiKey = "";
  token = "";
  dollarToken = "";
  propertiesToken = "";
  isEnvelope = false;
  lane: Lane | undefined = undefined;
}

type Range = Pick<ObjectSpan, "start" | "end">;

export function createPeek(projects: ProjectLookup): Peek {
  return peek;

  function peek(received: Buffer, isWhole: boolean, apiKey?: string): BodyHint {
    const body = withoutMark(received);
    const end = Math.min(body.length, peekedBytesMax);
    const start = spaceEnd(body, 0, end);
    const seen =
      body[start] === Ascii.OpenBracket
        ? readArray(body, { start, end })
        : readRoot(body, { start, end }, isWhole);
    const key = apiKey ?? keyIn(seen);
    const project = key === "" ? undefined : projects.byKey(key);
    const { lane } = seen;
    if (project?.enabled !== true) return { projectId: undefined, lane };
    const isCertain = apiKey !== undefined || seen.apiKey !== "";
    return { projectId: project.id, lane, meter: isCertain ? project.meter : undefined };
  }
}

function keyIn({ apiKey, token, dollarToken, propertiesToken, isEnvelope }: Seen): string {
  if (apiKey !== "") return apiKey;
  if (token !== "" || isEnvelope) return token;
  return dollarToken === "" ? propertiesToken : dollarToken;
}

function readRoot(body: Buffer, range: Range, isWhole: boolean): Seen {
  const seen = new Seen();
  if (body[range.start] !== Ascii.OpenBrace) return seen;
  const ended = readEvent(body, range, seen) >= 0;
  if (isWhole && !ended) readEnd(body, seen);
  if (ended && (!seen.isEnvelope || seen.lane === undefined)) seen.lane = "live";
  return seen;
}

function readArray(body: Buffer, { start, end }: Range): Seen {
  let seen = new Seen();
  let at = start;
  do {
    seen = new Seen();
    const itemStart = spaceEnd(body, at + 1, end);
    const isObject = body[itemStart] === Ascii.OpenBrace;
    const itemEnd = isObject
      ? readEvent(body, { start: itemStart, end }, seen)
      : endOfValue(body, itemStart, end);
    seen.isEnvelope = false;
    at = itemEnd < 0 ? end : spaceEnd(body, itemEnd, end);
  } while (at < end && body[at] === Ascii.Comma && keyIn(seen) === "");
  seen.lane = "live";
  return seen;
}

function readEvent(body: Buffer, range: Range, seen: Seen): number {
  return walkMembers({ body, start: range.start, end: range.end }, (member) => {
    if (body[member.valueStart] === Ascii.OpenBrace && nameIs(body, member, "properties")) {
      seen.propertiesToken = "";
      const properties = { body, start: member.valueStart, end: member.valueEnd };
      walkMembers(properties, (property) => {
        const isWhole = property.valueEnd < member.valueEnd;
        if (isWhole && nameIs(body, property, "token"))
          seen.propertiesToken = keyAt(body, property);
        return true;
      });
    } else if (member.valueEnd < range.end) {
      note(body, seen, member);
    }
    return true;
  });
}

/** Reads the root object's last members backwards, up to a value that is an object or array. */
function readEnd(body: Buffer, seen: Seen): void {
  const start = Math.max(0, body.length - peekedFromEndBytesMax);
  const late = new Seen();
  let at = spaceStart(body, body.length, start);
  if (body[at - 1] !== Ascii.CloseBrace) return;
  at--;
  while (at > start) {
    const valueEnd = spaceStart(body, at, start);
    const valueStart = startOfValue(body, valueEnd, start);
    if (valueStart < start) break;
    at = spaceStart(body, valueStart, start);
    if (body[at - 1] !== Ascii.Colon) break;
    const nameEnd = spaceStart(body, at - 1, start) - 1;
    const nameStart = stringStart(body, nameEnd, start) + 1;
    if (nameStart <= start) break;
    at = spaceStart(body, nameStart - 1, start);
    if (body[at - 1] !== Ascii.Comma) break;
    const one = new Seen();
    note(body, one, { nameStart, nameEnd, valueStart, valueEnd });
    if (late.apiKey === "") late.apiKey = one.apiKey;
    if (late.token === "") late.token = one.token;
    if (late.dollarToken === "") late.dollarToken = one.dollarToken;
    late.lane ??= one.lane;
    at--;
  }
  if (late.apiKey !== "") seen.apiKey = late.apiKey;
  if (late.token !== "") seen.token = late.token;
  if (late.dollarToken !== "") seen.dollarToken = late.dollarToken;
  seen.lane = late.lane ?? seen.lane;
}

function note(body: Buffer, seen: Seen, member: MemberSpan): void {
  const { valueStart, valueEnd } = member;
  if (nameIs(body, member, "api_key")) seen.apiKey = keyAt(body, member);
  else if (nameIs(body, member, "token")) seen.token = keyAt(body, member);
  else if (nameIs(body, member, "$token")) seen.dollarToken = keyAt(body, member);
  else if (nameIs(body, member, "properties")) seen.propertiesToken = "";
  else if (nameIs(body, member, "batch")) seen.isEnvelope = true;
  else if (nameIs(body, member, "historical_migration")) {
    seen.lane =
      valueEnd - valueStart === "true".length && isText(body, "true", valueStart)
        ? "historical"
        : "live";
  }
}

function nameIs(body: Buffer, { nameStart, nameEnd }: MemberSpan, name: string): boolean {
  return nameEnd - nameStart === name.length && isText(body, name, nameStart);
}

function isText(body: Buffer, text: string, start: number): boolean {
  return body.toString("latin1", start, start + text.length) === text;
}

function keyAt(body: Buffer, { valueStart, valueEnd }: MemberSpan): string {
  if (body[valueStart] !== Ascii.Quote || valueEnd - valueStart > keyBytesMax) return "";
  const text = body.toString("latin1", valueStart + 1, valueEnd - 1);
  return text.trim() || text;
}
