// Reads of a request for flags what it asks, without the time at which it was sent, so that the
// same question of the same person is known again. SDKs send it as JSON, in base64 in a form, or
// packed.

import { gunzipSync } from "node:zlib";

/** A longer body is the same question only if it is the same to the byte. */
const bodyBytesMax = 65_536;
const unpackedBytesMax = 262_144;
const gzipMagic = [0x1f, 0x8b];
/** Members that say when it was asked. */
const timed = ["sent_at", "sentAt", "$sent_at"];

/** The question as a text; undefined where it cannot be read. */
export function flagsQuestion(body: Uint8Array): string | undefined {
  if (body.length > bodyBytesMax) return undefined;
  try {
    const question: unknown = JSON.parse(textOf(body));
    if (typeof question !== "object" || question === null) return undefined;
    for (const name of timed) delete (question as Record<string, unknown>)[name];
    return JSON.stringify(question);
  } catch {
    return undefined;
  }
}

/** Throws where it cannot be unpacked. */
function textOf(body: Uint8Array): string {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  if (gzipMagic.every((byte, at) => bytes[at] === byte))
    return gunzipSync(bytes, { maxOutputLength: unpackedBytesMax }).toString("utf8");
  const text = bytes.toString("utf8");
  if (text.startsWith("{")) return text;
  const data = new URLSearchParams(text).get("data") ?? text;
  return data.startsWith("{") ? data : Buffer.from(data, "base64").toString("utf8");
}
