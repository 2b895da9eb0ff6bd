// Converts one event of a language model, sent as multipart/form-data. If a large property does not
// fit, it is not stored, and the answer lists it. The texts are joined without parsing them,
// because parsed numbers can lose digits.

import { Buffer } from "node:buffer";
import { gunzipSync } from "node:zlib";
import type { Problem } from "../../../platform/base/errors.ts";
import type { IntakeReport } from "../port.ts";
import { type FixedAnswer, JSON_TYPE, nosniff } from "../reply.ts";
import { type Batch, batchOf, type Conversion, type ConversionHead } from "./conversion.ts";
import { JsonCursor, parsedRepaired, textIn } from "./json-cursor.ts";
import { isObject } from "./otlp.ts";

const eventBytesMax = 983_040;
const partsMax = 100;
const blobBytesMax = 524_288;

interface Part {
  readonly name: string;
  readonly contentType: string;
  readonly contentEncoding: string;
  readonly bytes: Buffer;
}

interface PartInfo {
  readonly name: string;
  readonly length: number;
  readonly "content-type": string | null;
  readonly "content-encoding": string | null;
}

interface NotStored {
  readonly name: string;
  readonly length: number;
  readonly reason: string;
}

class PartError extends Error {}

export class AiMultipart implements Conversion {
  readonly head: ConversionHead;
  readonly takesEmpty = false;
  readonly bytesMax = Number.POSITIVE_INFINITY;
  notes: { accepted: readonly PartInfo[]; readonly notStored: NotStored[] } = {
    accepted: [],
    notStored: [],
  };

  constructor(head: ConversionHead) {
    this.head = head;
  }

  convert(body: Buffer): Batch | Problem {
    const { apiKey, contentType } = this.head;
    try {
      return batchOf(apiKey, [this.#eventText(partsOf(body, contentType))]);
    } catch (error) {
      if (error instanceof PartError) return { code: "invalid_payload", detail: error.message };
      throw error;
    }
  }

  answer({ accepted, errors, warnings }: IntakeReport): FixedAnswer | Problem {
    if (accepted === 0) {
      const detail = [...errors, ...warnings][0]?.detail ?? "The event is not stored";
      return { code: "invalid_payload", detail };
    }
    const { notes } = this;
    const text = JSON.stringify({
      accepted_parts: notes.accepted,
      parts_not_stored: notes.notStored.length > 0 ? notes.notStored : undefined,
      warnings: warnings.length > 0 ? warnings : undefined,
    });
    const headers = [["Content-Type", JSON_TYPE], nosniff] as const;
    return { status: 200, headers, body: `${text}\n` };
  }

  #eventText(parts: readonly Part[]): string {
    const [first] = parts;
    if (first?.name !== "event")
      throw new PartError(`The first part must be event (got ${quoted(first?.name)})`);
    const own = parts.filter(({ name }) => name === "event" || name === "event.properties");
    const bytes = own.reduce((sum, part) => sum + part.bytes.length, 0);
    if (bytes > eventBytesMax)
      throw new PartError(
        `event and event.properties may have at most ${eventBytesMax} bytes together`,
      );
    const event = objectIn(first);
    const separate = parts.find(({ name }) => name === "event.properties");
    const within = event.value["properties"];
    if (separate !== undefined && within !== undefined)
      throw new PartError(
        'the parts "event" and "event.properties" both contain properties: send them in one part only',
      );
    if (within !== undefined && !isNone(within) && !isObject(within))
      throw new PartError("properties must be an object");
    const members = this.#blobMembers(parts);
    if (within === undefined) {
      const properties = separate === undefined ? "{}" : objectIn(separate).text;
      return withMembers(event.text, [`"properties":${withMembers(properties, members)}`]);
    }
    if (members.length === 0) return event.text;
    const [before, properties, after] = around(event.text, "properties");
    return `${before}${withMembers(isNone(within) ? "{}" : properties, members)}${after}`;
  }

  #blobMembers(parts: readonly Part[]): readonly string[] {
    const members: string[] = [];
    const accepted: PartInfo[] = [];
    const { notStored } = this.notes;
    let bytesLeft = blobBytesMax;
    for (const [index, part] of parts.entries()) {
      const { name, bytes } = part;
      const isBlob = name.startsWith(blobPrefix) && name.length > blobPrefix.length;
      if (!isBlob && (name === "event" ? index === 0 : name === "event.properties")) {
        accepted.push(infoOf(part));
        continue;
      }
      const content = isBlob ? contentIn(part, bytesLeft) : undefined;
      const whole = content && contentOf(content, part.contentType.toLowerCase());
      const text = whole && Buffer.byteLength(whole) <= bytesLeft ? whole : undefined;
      if (isBlob && text === undefined)
        bytesLeft = Math.max(0, bytesLeft - (content ?? bytes).length);
      if (text === undefined) {
        const reason = isBlob
          ? `it is unreadable, or exceeds the maximum of ${blobBytesMax} bytes of such parts in an event`
          : "it is not a part of an event";
        notStored.push({ name: name.slice(0, 200), length: bytes.length, reason });
        continue;
      }
      bytesLeft -= Buffer.byteLength(text);
      members.push(`${JSON.stringify(name.slice(blobPrefix.length))}:${text}`);
      accepted.push(infoOf(part));
    }
    this.notes.accepted = accepted;
    if (notStored.length > 0) members.push(`"$ai_parts_not_stored":${JSON.stringify(notStored)}`);
    return members;
  }
}

function infoOf({ name, bytes, contentType, contentEncoding }: Part): PartInfo {
  return {
    name,
    length: bytes.length,
    "content-type": contentType || null,
    "content-encoding": contentEncoding || null,
  };
}

const blobPrefix = "event.properties.";

function contentIn({ bytes, contentEncoding }: Part, bytesMax: number): Buffer | undefined {
  if (bytes.length > bytesMax) return undefined;
  if (!/gzip/i.test(contentEncoding)) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: Math.max(1, bytesMax) });
  } catch {
    return undefined;
  }
}

function contentOf(content: Buffer, contentType: string): string {
  const text = textIn(content);
  if (contentType.includes("json")) {
    try {
      parsed(text);
      return text.trim();
    } catch {
      return JSON.stringify(text);
    }
  }
  if (contentType === "" || contentType.startsWith("text/")) return JSON.stringify(text);
  const type = contentType.split(";")[0]!.trim();
  return JSON.stringify(`data:${type};base64,${content.toString("base64")}`);
}

interface ObjectText {
  readonly text: string;
  /** The parsed value. Its numbers may have lost digits. */
  readonly value: Record<string, unknown>;
}

function objectIn({ name, bytes }: Part): ObjectText {
  const text = textIn(bytes).trim();
  let value: unknown;
  try {
    value = parsed(text);
  } catch (error) {
    throw new PartError(`The part ${name} is not JSON: ${(error as Error).message}`);
  }
  if (isObject(value)) return { text, value };
  if (name === "event.properties" && isNone(value)) return { text: "{}", value: {} };
  throw new PartError(`The part ${name} must be a JSON object`);
}

function isNone(value: unknown): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}

function parsed(text: string): unknown {
  return parsedRepaired(text, JSON.parse);
}

function around(object: string, member: string): readonly [string, string, string] {
  const bytes = Buffer.from(object);
  const cursor = new JsonCursor(bytes);
  let start = bytes.length;
  let end = bytes.length;
  for (const name of cursor.members()) {
    const value = cursor.text();
    if (name !== member) continue;
    start = value.byteOffset - bytes.byteOffset;
    end = start + value.length;
  }
  return [
    bytes.toString("utf8", 0, start),
    bytes.toString("utf8", start, end),
    bytes.toString("utf8", end),
  ];
}

function withMembers(object: string, members: readonly string[]): string {
  if (members.length === 0) return object;
  const own = object.slice(1, -1).trim();
  return `{${[...(own === "" ? [] : [own]), ...members].join()}}`;
}

function partsOf(body: Buffer, contentType: string): readonly Part[] {
  const [, inQuotes, plain] =
    /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(contentType) ??
    [];
  const boundary = inQuotes ?? plain;
  if (boundary === undefined)
    throw new PartError("The Content-Type must be multipart/form-data with a boundary");
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  const parts: Part[] = [];
  const names = new Set<string>();
  let at = body.indexOf(delimiter.subarray(2));
  if (at < 0) throw new PartError("The body does not have the boundary of its Content-Type");
  at += delimiter.length - 2;
  while (body.toString("latin1", at, at + 2) !== "--") {
    const end = body.indexOf(delimiter, at);
    if (end < 0) throw new PartError("The body ends within a part");
    const part = partIn(body.subarray(at, end));
    if (names.has(part.name)) throw new PartError(`There are two parts ${quoted(part.name)}`);
    names.add(part.name);
    parts.push(part);
    if (parts.length > partsMax)
      throw new PartError(`A request may have at most ${partsMax} parts`);
    at = end + delimiter.length;
  }
  return parts;
}

const headBytesMax = 8_192;

function partIn(text: Buffer): Part {
  const headEnd = text.subarray(0, headBytesMax).indexOf("\r\n\r\n");
  if (headEnd < 0) throw new PartError("A part has no head");
  const headers = new Map(
    text
      .toString("utf8", 0, headEnd)
      .split("\r\n")
      .map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
      }),
  );
  const [, inQuotes, plain] =
    /;\s*name=(?:"([^"]*)"|([^\s;"]+))/i.exec(headers.get("content-disposition") ?? "") ?? [];
  return {
    name: inQuotes ?? plain ?? "",
    contentType: headers.get("content-type") ?? "",
    contentEncoding: headers.get("content-encoding") ?? "",
    bytes: text.subarray(headEnd + 4),
  };
}

function quoted(name: string | undefined): string {
  return name === undefined ? "none" : JSON.stringify(name.slice(0, 200));
}
