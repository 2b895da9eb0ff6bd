// The repair of a refused body for the reference scanner. It must share nothing with the addon.

import { isUtf8 } from "node:buffer";
import { isJsonSpace } from "../platform/base/ascii.ts";
import { parseTree } from "./reference-parse.ts";
import { Header, type Repair, repairsMax } from "./table.ts";

type PieceKind = "copied" | "malformed" | "nonFinite";

interface Piece {
  readonly kind: PieceKind;
  readonly length: number;
  readonly text: Buffer;
}

const replacement = Buffer.from("\ufffd");
const nullWord = Buffer.from("null");
/** The encoded surrogates of a pair, in Latin-1. */
const surrogatePair = /^\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]/;
/** Whole strings, and the words outside of them, in Latin-1. */
const stringsAndWords = /"(?:[^"\\]+|\\[\s\S])*(?:"|\\?$)|NaN|-?Infinity/g;

/** A malformed piece is the longest beginning that some continuation would make well-formed. */
function sequenceAt(body: Buffer, at: number): Piece {
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
      .map(({ 0: text, index }) => [index, text.length]),
  );
  const pieces: Piece[] = [];
  for (let at = 0; at < body.length; at += pieces.at(-1)!.length) {
    const word = words.get(at);
    pieces.push(
      word === undefined
        ? sequenceAt(body, at)
        : { kind: "nonFinite", length: word, text: nullWord },
    );
  }
  return pieces;
}

/** Whether the text has the brackets of an object or array. */
function mayHoldEvents(body: Buffer): boolean {
  let start = 0;
  let end = body.length;
  while (start < end && isJsonSpace(body[start])) start++;
  while (end > start && isJsonSpace(body[end - 1])) end--;
  return (
    end - start >= 2 && ["{}", "[]"].includes(String.fromCharCode(body[start]!, body[end - 1]!))
  );
}

/** Fills Header.Malformed, Header.NonFinite and Header.RepairedBytes for a malformed text. */
export function measureRepair(header: Uint32Array, body: Buffer): void {
  if (!mayHoldEvents(body)) return;
  const pieces = piecesOf(body);
  const count = (wanted: PieceKind) => pieces.filter(({ kind }) => kind === wanted).length;
  const [malformed, nonFinite] = [count("malformed"), count("nonFinite")];
  if (malformed > repairsMax || nonFinite > repairsMax) return;
  header[Header.Malformed] = malformed;
  header[Header.NonFinite] = nonFinite;
  header[Header.RepairedBytes] = pieces.reduce((bytes, { text }) => bytes + text.length, 0);
}

/** As `measureRepair`, for a text that is UTF-8, and JSON only up to the offset `fault`. */
export function measureNumbers(header: Uint32Array, body: Buffer, fault: number): void {
  if (!/^(?:NaN|Infinity)/.test(body.toString("latin1", fault, fault + 8))) return;
  const repaired = Buffer.concat(piecesOf(body).map(({ text }) => text));
  if (typeof parseTree(repaired) !== "number") measureRepair(header, body);
}

/** Does what Scanner.repair says in table.ts. */
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
      if (piece.kind === "malformed") malformed[progress[2]!++] = written;
      if (piece.kind === "nonFinite") nonFinite[progress[3]!++] = written;
      progress[1] = written + piece.text.copy(text, written);
      progress[0] = read + piece.length;
    }
    read += piece.length;
  }
}
