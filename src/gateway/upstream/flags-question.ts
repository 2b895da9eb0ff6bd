// Extracts the question of a flags request, so that the same question is recognized again. It
// excludes the time of sending. The question is compared as bytes, because different large numbers
// can be parsed to the same value.

import { gunzipSync } from "node:zlib";
import { Ascii } from "../../platform/base/ascii.ts";
import { spaceEnd, walkMembers } from "../../platform/base/json-bytes.ts";

/** SDKs send only a few KiB. */
const questionBytesMax = 16_384;
const gzipMagic = [0x1f, 0x8b];
const formStart = "data=";
const timed: ReadonlySet<string> = new Set(["sent_at", "sentAt", "$sent_at"]);

type Question = readonly [packing: string, asked: Uint8Array, rest: string];

/**
 * Returns undefined if the question is too long. If the body cannot be read, returns the body
 * itself.
 */
export function flagsQuestion(body: Uint8Array): Question | undefined {
  if (body.length > questionBytesMax) return undefined;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  if (gzipMagic.every((byte, at) => bytes[at] === byte)) return ofGzip(bytes);
  if (bytes[0] === Ascii.OpenBrace) return ["json", withoutTimes(bytes), ""];
  const text = bytes.toString("latin1");
  const [first = "", ...others] = text.split("&");
  const inForm = first.startsWith(formStart) ? fromForm(first.slice(formStart.length)) : undefined;
  // If there are several `data` fields, only the upstream knows which of them counts. So all of
  // them are compared.
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
  if (/[^!-*,-~]/.test(value)) return undefined;
  try {
    const text = decodeURIComponent(value);
    return text.startsWith("{") ? Buffer.from(text) : fromBase64(text);
  } catch {
    return undefined;
  }
}

function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes[0] === Ascii.OpenBrace && bytes.toString("base64") === text ? bytes : undefined;
}

function withoutTimes(json: Buffer): Uint8Array {
  const parts: Buffer[] = [];
  let taken = 0;
  const span = { body: json, start: spaceEnd(json, 0, json.length), end: json.length };
  walkMembers(span, ({ nameStart, nameEnd, valueStart, valueEnd }) => {
    const isTimed = timed.has(json.toString("latin1", nameStart, nameEnd));
    if (isTimed && json[valueStart] === Ascii.Quote) {
      parts.push(json.subarray(taken, valueStart + 1));
      taken = valueEnd - 1;
    }
    return true;
  });
  return parts.length === 0 ? json : Buffer.concat([...parts, json.subarray(taken)]);
}
