// Whose a body is and on which lane it goes, from its first bytes, and its last where they are there. It puts bodies in an order and
// into queues before they are scanned, and decides nothing: a member may come again further on, and the scan has the last word.
// Reads a bounded number of bytes, whatever they are, and makes no objects of them. Must not answer anybody.

import type { Buffer } from "node:buffer";
import type { BodyHint, EarlyLook, Lane, ProjectLookup } from "../types.ts";

/** How far from the start, and from the end, a look goes. */
export const lookedAtBytesMax = 4_096;
const lookedAtFromEndBytesMax = 1_024;
/** A key has 200 characters at most. */
const keyBytesMax = 256;

const Byte = {
  Tab: 0x09,
  LineFeed: 0x0a,
  CarriageReturn: 0x0d,
  Space: 0x20,
  Quote: 0x22,
  Comma: 0x2c,
  Colon: 0x3a,
  OpenBracket: 0x5b,
  Backslash: 0x5c,
  CloseBracket: 0x5d,
  OpenBrace: 0x7b,
  CloseBrace: 0x7d,
} as const;

/** What members of the root say; a later one of a name replaces an earlier. */
interface Seen {
  apiKey: string;
  token: string;
  lane: Lane | undefined;
}

const nothing: BodyHint = { projectId: undefined, lane: undefined };

export function createEarlyLook(projects: ProjectLookup): EarlyLook {
  return look;

  function look(body: Buffer, isWhole: boolean): BodyHint {
    const seen: Seen = { apiKey: "", token: "", lane: undefined };
    const rootEnded = readStart(body, seen);
    if (isWhole && !rootEnded) readEnd(body, seen);
    // What is seen whole has no flag but those seen.
    if (rootEnded) seen.lane ??= "live";
    const key = seen.apiKey === "" ? seen.token : seen.apiKey;
    const project = key === "" ? undefined : projects.byKey(key);
    const projectId = project?.enabled === true ? project.id : undefined;
    return projectId === undefined && seen.lane === undefined ? nothing : { projectId, lane: seen.lane };
  }
}

/** The root's members from the start on. True when the root ends within what is looked at. */
function readStart(body: Buffer, seen: Seen): boolean {
  const end = Math.min(body.length, lookedAtBytesMax);
  let at = spaceEnd(body, 0, end);
  if (body[at] !== Byte.OpenBrace) return false;
  at = spaceEnd(body, at + 1, end);
  while (at < end && body[at] === Byte.Quote) {
    const nameStart = at + 1;
    const nameEnd = stringEnd(body, nameStart, end);
    at = spaceEnd(body, nameEnd + 1, end);
    if (body[at] !== Byte.Colon) return false;
    const valueStart = spaceEnd(body, at + 1, end);
    const valueEnd = endOfValue(body, valueStart, end);
    if (valueEnd >= end) return false;
    note(body, seen, { nameStart, nameEnd, valueStart, valueEnd });
    at = spaceEnd(body, valueEnd, end);
    if (at < end && body[at] === Byte.CloseBrace) return true;
    if (body[at] !== Byte.Comma) return false;
    at = spaceEnd(body, at + 1, end);
  }
  return at < end && body[at] === Byte.CloseBrace;
}

/**
 * The root's members from the end backwards, as far as they are plain texts, numbers and words: behind the batch come no others.
 * Where the body is JSON, what is read so is a member of the root and nothing else, because its `}` is the last.
 */
function readEnd(body: Buffer, seen: Seen): void {
  const start = Math.max(0, body.length - lookedAtFromEndBytesMax);
  const late: Seen = { apiKey: "", token: "", lane: undefined };
  let at = spaceStart(body, body.length, start);
  if (body[at - 1] !== Byte.CloseBrace) return;
  at--;
  while (at > start) {
    const valueEnd = spaceStart(body, at, start);
    const valueStart = startOfValue(body, valueEnd, start);
    if (valueStart < start) break;
    at = spaceStart(body, valueStart, start);
    if (body[at - 1] !== Byte.Colon) break;
    const nameEnd = spaceStart(body, at - 1, start) - 1;
    const nameStart = stringStart(body, nameEnd, start) + 1;
    if (nameStart <= start) break;
    at = spaceStart(body, nameStart - 1, start);
    if (body[at - 1] !== Byte.Comma) break;
    // The last of a name counts, and comes first here.
    const one: Seen = { apiKey: "", token: "", lane: undefined };
    note(body, one, { nameStart, nameEnd, valueStart, valueEnd });
    if (late.apiKey === "") late.apiKey = one.apiKey;
    if (late.token === "") late.token = one.token;
    late.lane ??= one.lane;
    at--;
  }
  if (late.apiKey !== "") seen.apiKey = late.apiKey;
  if (late.token !== "") seen.token = late.token;
  seen.lane = late.lane ?? seen.lane;
}

interface Member {
  /** Within the quotes. */
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly valueStart: number;
  readonly valueEnd: number;
}

function note(body: Buffer, seen: Seen, { nameStart, nameEnd, valueStart, valueEnd }: Member): void {
  switch (nameEnd - nameStart) {
    case "token".length:
      if (isText(body, "token", nameStart)) seen.token = keyAt(body, valueStart, valueEnd);
      break;
    case "api_key".length:
      if (isText(body, "api_key", nameStart)) seen.apiKey = keyAt(body, valueStart, valueEnd);
      break;
    case "historical_migration".length:
      if (!isText(body, "historical_migration", nameStart)) return;
      seen.lane = valueEnd - valueStart === "true".length && isText(body, "true", valueStart) ? "historical" : "live";
      break;
  }
}

function isText(body: Buffer, text: string, start: number): boolean {
  return body.toString("latin1", start, start + text.length) === text;
}

function keyAt(body: Buffer, start: number, end: number): string {
  if (body[start] !== Byte.Quote || end - start > keyBytesMax) return "";
  return body.toString("latin1", start + 1, end - 1).trim();
}

function isSpace(byte: number | undefined): boolean {
  return byte === Byte.Space || byte === Byte.LineFeed || byte === Byte.CarriageReturn || byte === Byte.Tab;
}

function spaceEnd(body: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && isSpace(body[at])) at++;
  return at;
}

/** Where white space before `end` starts. */
function spaceStart(body: Buffer, end: number, start: number): number {
  let at = end;
  while (at > start && isSpace(body[at - 1])) at--;
  return at;
}

/** Where the closing quote is, from within the text; `end` where that is not reached. */
function stringEnd(body: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && body[at] !== Byte.Quote) at += body[at] === Byte.Backslash ? 2 : 1;
  return Math.min(at, end);
}

/** Where the opening quote is, from the closing one; -1 where it is not reached, or the text has escapes. */
function stringStart(body: Buffer, closing: number, start: number): number {
  if (closing <= start || body[closing] !== Byte.Quote) return -1;
  for (let at = closing - 1; at >= start; at--) {
    if (body[at] === Byte.Backslash) return -1;
    if (body[at] === Byte.Quote) return at > start && body[at - 1] === Byte.Backslash ? -1 : at;
  }
  return -1;
}

/** One past the value's last byte; `end` where that is not reached. */
function endOfValue(body: Buffer, start: number, end: number): number {
  const first = body[start];
  if (first === Byte.Quote) return Math.min(stringEnd(body, start + 1, end) + 1, end);
  if (first !== Byte.OpenBrace && first !== Byte.OpenBracket) return endOfWord(body, start, end);
  let depth = 0;
  for (let at = start; at < end; at++) {
    const byte = body[at];
    if (byte === Byte.Quote) at = stringEnd(body, at + 1, end);
    else if (byte === Byte.OpenBrace || byte === Byte.OpenBracket) depth++;
    else if (byte === Byte.CloseBrace || byte === Byte.CloseBracket) {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return end;
}

function endOfWord(body: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && body[at] !== Byte.Comma && body[at] !== Byte.CloseBrace && !isSpace(body[at])) at++;
  return at;
}

/** Where a text, number or word starts that ends before `end`; below `start` for anything else. */
function startOfValue(body: Buffer, end: number, start: number): number {
  if (body[end - 1] === Byte.Quote) return stringStart(body, end - 1, start);
  let at = end;
  while (at > start && isWordByte(body[at - 1]!)) at--;
  return at === end ? -1 : at;
}

/** Of numbers, true, false and null. */
function isWordByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x2e ||
    byte === 0x2b ||
    byte === 0x45
  );
}
