// Repairs a rejected body for the reference scanner. It must not share code with the addon.

import { isUtf8 } from "node:buffer";
import { isJsonSpace } from "../../../src/platform/base/ascii.ts";
import {
  growthBytesMax,
  Header,
  type Repair,
  repairPlacesMax,
} from "../../../src/records/table.ts";
import { parseTree } from "./parse.ts";

type PieceKind = "copied" | "malformed" | "nonFinite";

interface Piece {
  readonly kind: PieceKind;
  readonly length: number;
  readonly text: Buffer;
  readonly isNoted: boolean;
}

const replacement = Buffer.from("\ufffd");
const shortReplacement = Buffer.from("?");
const nullWord = Buffer.from("null");
const surrogatePair = /^\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]/;
const stringsAndWords = /"(?:[^"\\]+|\\[\s\S])*(?:"|\\?$)|NaN|-?Infinity|\{/g;

/**
 * Returns the piece at `at`. A malformed piece is the longest prefix that could be continued to a
 * well-formed sequence.
 */
function sequenceAt(body: Buffer, at: number): Omit<Piece, "isNoted"> {
  const pair = surrogatePair.exec(body.toString("latin1", at, at + 6));
  if (pair !== null) return { kind: "copied", length: 6, text: joined(body, at) };
  const lead = body[at]!;
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const whole = body.subarray(at, at + length);
  if (whole.length === length && isUtf8(whole)) return { kind: "copied", length, text: whole };
  for (let begun = Math.min(length, body.length - at + 1) - 1; begun > 1; begun--) {
    const rest = length - begun;
    for (const filler of [0x80, 0x90, 0xa0, 0xbf]) {
      if (isUtf8(Buffer.concat([body.subarray(at, at + begun), Buffer.alloc(rest, filler)])))
        return { kind: "malformed", length: begun, text: replacement };
    }
  }
  return { kind: "malformed", length: 1, text: replacement };
}

function joined(body: Buffer, at: number): Buffer {
  const unit = (from: number) =>
    0xd000 | ((body[from + 1]! & 0x3f) << 6) | (body[from + 2]! & 0x3f);
  return Buffer.from(String.fromCharCode(unit(at), unit(at + 3)));
}

function piecesOf(body: Buffer): readonly Piece[] {
  const words = new Map(
    [...body.toString("latin1").matchAll(stringsAndWords)]
      .filter(([text]) => !text.startsWith('"'))
      .map(({ 0: text, index }) => [index, text]),
  );
  const pieces: Piece[] = [];
  const places = { malformed: 0, nonFinite: 0 };
  const noted = new Set<PieceKind>();
  let growth = 0;
  for (let at = 0; at < body.length; at += pieces.at(-1)!.length) {
    const word = words.get(at);
    if (word === "{") noted.clear();
    const { kind, length, text } =
      word === undefined || word === "{"
        ? sequenceAt(body, at)
        : ({ kind: "nonFinite", length: word.length, text: nullWord } as const);
    const written = kind === "malformed" && growth >= growthBytesMax ? shortReplacement : text;
    growth += written.length - length;
    const isNoted = kind !== "copied" && !noted.has(kind) && places[kind] < repairPlacesMax;
    if (isNoted) {
      noted.add(kind);
      places[kind]++;
    }
    pieces.push({ kind, length, text: written, isNoted });
  }
  return pieces;
}

function mayHoldEvents(body: Buffer): boolean {
  let start = 0;
  let end = body.length;
  while (start < end && isJsonSpace(body[start])) start++;
  while (end > start && isJsonSpace(body[end - 1])) end--;
  return (
    end - start >= 2 && ["{}", "[]"].includes(String.fromCharCode(body[start]!, body[end - 1]!))
  );
}

export function measureRepair(header: Uint32Array, body: Buffer): void {
  if (!mayHoldEvents(body)) return;
  const pieces = piecesOf(body);
  const count = (wanted: PieceKind) =>
    pieces.filter(({ kind, isNoted }) => isNoted && kind === wanted).length;
  header[Header.Malformed] = count("malformed");
  header[Header.NonFinite] = count("nonFinite");
  header[Header.RepairedBytes] = pieces.reduce((bytes, { text }) => bytes + text.length, 0);
}

/** The body is valid UTF-8. It is valid JSON only up to the offset `fault`. */
export function measureNumbers(header: Uint32Array, body: Buffer, fault: number): void {
  if (!/^(?:NaN|Infinity)/.test(body.toString("latin1", fault, fault + 8))) return;
  const repaired = Buffer.concat(piecesOf(body).map(({ text }) => text));
  if (typeof parseTree(repaired) !== "number") measureRepair(header, body);
}

export function repairBody(
  body: Buffer,
  until: number,
  { text, malformed, nonFinite, progress }: Repair,
): void {
  let read = 0;
  for (const piece of piecesOf(body)) {
    if (read >= until) break;
    if (read >= progress[0]!) {
      const written = progress[1]!;
      if (piece.isNoted && piece.kind === "malformed") malformed[progress[2]!++] = written;
      if (piece.isNoted && piece.kind === "nonFinite") nonFinite[progress[3]!++] = written;
      progress[1] = written + piece.text.copy(text, written);
      progress[0] = read + piece.length;
    }
    read += piece.length;
  }
}
