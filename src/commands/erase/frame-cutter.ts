// Builds a frame without the lines of a person. Lines that do not contain an id of the person stay
// unchanged, byte by byte.

import { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import type { Lane } from "../../platform/base/lane.ts";
import { FrameLines } from "../../readers/effects/lines/frame-lines.ts";
import type { LineVisitor, StoredLine } from "../../readers/effects/lines/line.ts";
import type { StoredFrame } from "../../readers/stream/frame.ts";
import { distinctIdText } from "../../records/distinct-id.ts";
import { type ListedMember, listMembers } from "../../records/json-members.ts";
import { TokenType } from "../../records/table.ts";

export interface CutFrame {
  readonly erased: number;
  readonly kept: number;
  readonly data: Buffer;
  /** Number of lines that contain an id but are not events. Their person is unknown. */
  readonly doubtful: number;
}

interface WholeFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly sequence: number;
  readonly projectId: string | undefined;
  readonly data: Uint8Array;
}

export class FrameCutter {
  readonly #projectId: string;
  readonly #ids: ReadonlySet<string>;
  readonly #idTexts: readonly Buffer[];
  readonly #lines = new FrameLines();

  constructor(projectId: string, ids: ReadonlySet<string>) {
    this.#projectId = projectId;
    this.#ids = ids;
    this.#idTexts = [...ids].map((id) => Buffer.from(JSON.stringify(id).slice(1, -1)));
  }

  cut({ data, projectId, ...name }: WholeFrame): CutFrame {
    const body = Buffer.from(data.buffer, data.byteOffset, data.length);
    const found = new Map<number, Buffer | undefined>();
    let doubtful = 0;
    let lines: readonly Buffer[] | undefined;
    const textOfLine = (index: number): Buffer => {
      lines ??= linesOf(body);
      return lines[index] ?? Buffer.alloc(0);
    };
    const mayName = mayNameIds(body);
    const visitor: LineVisitor = {
      line: (line) => {
        const isOwn = (projectId ?? line.projectId) === this.#projectId;
        if (isOwn) this.#look(line, { textOfLine, mayName, found });
      },
      unreadable: (_, line) => {
        if (hasOneOf(textOfLine(line), this.#idTexts)) doubtful++;
      },
    };
    const frame: StoredFrame = {
      ...name,
      epoch: 1,
      projectId: undefined,
      messageId: "",
      storedAtMs: 0,
      data: body,
    };
    for (const _ of this.#lines.read(frame, visitor));
    if (found.size === 0) return { erased: 0, kept: 0, data: body, doubtful };
    const kept = linesOf(body).flatMap((line, index) => {
      const stays = found.has(index) ? found.get(index) : line;
      return stays === undefined || isBlank(stays) ? [] : [stays];
    });
    return { erased: found.size, kept: kept.length, data: Buffer.concat(kept), doubtful };
  }

  #look(line: StoredLine, { textOfLine, mayName, found }: Looking): void {
    const { line: at, distinctId } = line;
    if (this.#ids.has(distinctId)) {
      const isOnGroup = line.usageClass === "group_identify" && line.effect().group !== undefined;
      found.set(at, isOnGroup ? groupAlone(textOfLine(at)) : undefined);
      return;
    }
    if (!mayName) return;
    const text = textOfLine(at);
    const isNamed = mayNameIds(text) && namedIds(text).some(({ id }) => this.#ids.has(id));
    if (isNamed) found.set(at, withoutNamedIds(text, this.#ids, distinctId));
  }
}

interface Looking {
  readonly textOfLine: (index: number) => Buffer;
  readonly mayName: boolean;
  readonly found: Map<number, Buffer | undefined>;
}

function hasOneOf(text: Buffer, some: readonly Buffer[]): boolean {
  return some.some((one) => text.includes(one));
}

function linesOf(body: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < body.length; ) {
    const found = body.indexOf(Ascii.LineFeed, start);
    const end = found < 0 ? body.length : found + 1;
    lines.push(body.subarray(start, end));
    start = end;
  }
  return lines;
}

function isBlank(line: Buffer): boolean {
  return line.toString("latin1").trim() === "";
}

const namingProperties: ReadonlyMap<string, string> = new Map([
  ["$identify", "$anon_distinct_id"],
  ["$create_alias", "alias"],
  ["$merge_dangerously", "alias"],
]);
/**
 * A line contains a second id only if it contains one of these texts. The last text is an escape,
 * which may be part of a property name.
 */
const marks = [...[...namingProperties.keys()].map((name) => JSON.stringify(name)), "\\u00"];

const erasedId = "$erased";
const groupProperties: ReadonlySet<string> = new Set([
  "$group_type",
  "$group_key",
  "$group_set",
  "$group_unset",
]);
const groupMembers: ReadonlySet<string> = new Set([
  "uuid",
  "project_id",
  "event",
  "kind",
  "historical",
  "timestamp",
  "timestamp_sent",
  "sent_at",
  "received_at",
]);

function mayNameIds(text: Buffer): boolean {
  return marks.some((mark) => text.includes(mark));
}

function namedIds(line: Buffer): NamedId[] {
  const top = listMembers(line, ...objectIn(line));
  const event = top.find(({ name }) => name === "event");
  const property =
    event === undefined ? undefined : namingProperties.get(textOf(line, event.start, event.end));
  if (property === undefined) return [];
  return top
    .filter(({ name, type }) => name === "properties" && type === TokenType.Object)
    .flatMap(({ start, end }) => listMembers(line, start, end))
    .filter(({ name, type }) => name === property && !nothing.includes(type))
    .map(({ start, end, type }) => ({
      id: distinctIdText(line, start, end, type).text,
      start,
      end,
    }));
}

/** Replaces the erased ids in a line of another person with the id of that person. */
function withoutNamedIds(line: Buffer, ids: ReadonlySet<string>, ownId: string): Buffer {
  const own = Buffer.from(JSON.stringify(ownId));
  const parts: Buffer[] = [];
  let at = 0;
  for (const { id, start, end } of namedIds(line)) {
    if (!ids.has(id)) continue;
    parts.push(line.subarray(at, start), own);
    at = end;
  }
  parts.push(line.subarray(at));
  return Buffer.concat(parts);
}

/** Removes everything but the group properties that the event sets. */
function groupAlone(line: Buffer): Buffer {
  const top = listMembers(line, ...objectIn(line));
  const properties = top
    .filter(({ name, type }) => name === "properties" && type === TokenType.Object)
    .flatMap(({ start, end }) => listMembers(line, start, end))
    .filter(({ name }) => groupProperties.has(name));
  const texts = (members: readonly ListedMember[]) => members.map(({ text }) => text);
  const inside = [...texts(properties), '"$process_person_profile":false'].join(",");
  const members = [
    ...texts(top.filter(({ name }) => groupMembers.has(name))),
    `"distinct_id":${JSON.stringify(erasedId)}`,
    '"person_profile":false',
    `"properties":{${inside}}`,
  ];
  return Buffer.from(`{${members.join(",")}}\n`);
}

interface NamedId {
  readonly id: string;
  readonly start: number;
  readonly end: number;
}

const nothing: readonly TokenType[] = [TokenType.Null, TokenType.EmptyString];

function objectIn(line: Buffer): [start: number, end: number] {
  return [line.indexOf(Ascii.OpenBrace), line.lastIndexOf(Ascii.CloseBrace) + 1];
}

function textOf(line: Buffer, start: number, end: number): string {
  const value: unknown = JSON.parse(line.toString("utf8", start, end));
  return typeof value === "string" ? value : "";
}
