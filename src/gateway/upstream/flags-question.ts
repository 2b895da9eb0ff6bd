// Extracts the question of a flags request, without the time of sending, so that a repeated
// question is recognized. It remains bytes, because different large numbers have the same parsed
// value.

import { gunzipSync } from "node:zlib";
import { Ascii, stringEnd } from "../../platform/base/ascii.ts";

/** Maximum bytes of a question, packed or unpacked. SDKs send a few KiB. */
const questionBytesMax = 16_384;
const gzipMagic = [0x1f, 0x8b];
const formStart = "data=";
const timed: ReadonlySet<string> = new Set(["sent_at", "sentAt", "$sent_at"]);
const timedChars = { min: 6, max: 8 };

type Question = readonly [packing: string, asked: Uint8Array, rest: string];

/** Returns undefined if the question is too long. An unreadable body is its own question. */
export function flagsQuestion(body: Uint8Array): Question | undefined {
  if (body.length > questionBytesMax) return undefined;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  if (gzipMagic.every((byte, at) => bytes[at] === byte)) return ofGzip(bytes);
  if (bytes[0] === Ascii.OpenBrace) return ["json", withoutTimes(bytes), ""];
  const text = bytes.toString("latin1");
  const [first = "", ...others] = text.split("&");
  const inForm = first.startsWith(formStart) ? fromForm(first.slice(formStart.length)) : undefined;
  // Only the upstream knows which field `data` it reads, so all of them are part of the question.
  if (inForm !== undefined) return ["form", withoutTimes(inForm), others.join("&")];
  const inBase64 = fromBase64(text);
  if (inBase64 !== undefined) return ["base64", withoutTimes(inBase64), ""];
  return ["other", bytes, ""];
}

function ofGzip(bytes: Buffer): Question | undefined {
  try {
    const unpacked = gunzipSync(bytes, { maxOutputLength: questionBytesMax });
    return ["gzip", withoutTimes(unpacked), ""];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") return undefined;
    return ["other", bytes, ""];
  }
}

function fromForm(value: string): Buffer | undefined {
  // In a form a plus sign is a space, whatever the client intended.
  if (/[^!-*,-~]/.test(value)) return undefined;
  try {
    const text = decodeURIComponent(value);
    return text.startsWith("{") ? Buffer.from(text) : fromBase64(text);
  } catch {
    return undefined;
  }
}

/** Returns undefined unless the text is canonical base64, which all decoders read alike. */
function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes[0] === Ascii.OpenBrace && bytes.toString("base64") === text ? bytes : undefined;
}

/** Empties the outermost string members that state the time of sending. */
function withoutTimes(json: Buffer): Uint8Array {
  const parts: Buffer[] = [];
  let taken = 0;
  let depth = 0;
  let isTimed = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] as number;
    if (byte === Ascii.Quote) {
      const end = stringEnd(json, at + 1);
      if (isTimed) {
        parts.push(json.subarray(taken, at + 1));
        taken = end;
        isTimed = false;
      } else if (depth === 1) isTimed = isTimedName(json, at + 1, end);
      at = end;
    } else if (byte > 0x20 && byte !== Ascii.Colon) {
      isTimed = false;
      if (byte === Ascii.OpenBrace || byte === Ascii.OpenBracket) depth++;
      else if (byte === Ascii.CloseBrace || byte === Ascii.CloseBracket) depth--;
    }
  }
  return parts.length === 0 ? json : Buffer.concat([...parts, json.subarray(taken)]);
}

function isTimedName(json: Buffer, start: number, end: number): boolean {
  const chars = end - start;
  if (chars < timedChars.min || chars > timedChars.max) return false;
  if (!timed.has(json.toString("latin1", start, end))) return false;
  let after = end + 1;
  while (after < json.length && (json[after] as number) <= 0x20) after++;
  return json[after] === Ascii.Colon;
}
