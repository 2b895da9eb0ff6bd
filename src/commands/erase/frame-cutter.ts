// Builds a frame without the lines of a person. Other lines stay byte for byte the same.

import { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import type { Lane } from "../../platform/base/lane.ts";
import { FrameLines } from "../../readers/effects/lines/frame-lines.ts";
import type { LineVisitor, StoredLine } from "../../readers/effects/lines/line.ts";
import type { StoredFrame } from "../../readers/stream/frame.ts";
import { groupAlone, mayNameIds, namedIds, withoutNamedIds } from "./edited-line.ts";

export interface CutFrame {
  /** Number of lines that belonged to the person or named the person. */
  readonly erased: number;
  /** Number of lines in `data`. */
  readonly kept: number;
  readonly data: Buffer;
  /**
   * Number of lines that contain one of the ids and are not events, so that their owner is unknown.
   */
  readonly doubtful: number;
}

interface WholeFrame {
  readonly stream: string;
  readonly lane: Lane;
  readonly partition: number;
  readonly sequence: number;
  /** The project in the subject; undefined for a frame of several projects. */
  readonly projectId: string | undefined;
  readonly data: Uint8Array;
}

export class FrameCutter {
  readonly #projectId: string;
  readonly #ids: ReadonlySet<string>;
  /** The ids as they appear in a line without needless escapes. */
  readonly #idTexts: readonly Buffer[];
  readonly #lines = new FrameLines();

  constructor(projectId: string, ids: ReadonlySet<string>) {
    this.#projectId = projectId;
    this.#ids = ids;
    this.#idTexts = [...ids].map((id) => Buffer.from(JSON.stringify(id).slice(1, -1)));
  }

  cut({ data, projectId, ...name }: WholeFrame): CutFrame {
    const body = Buffer.from(data.buffer, data.byteOffset, data.length);
    /** The replacement of each line that contains the person; undefined to remove the line. */
    const found = new Map<number, Buffer | undefined>();
    let doubtful = 0;
    const spans = new LineSpans(body);
    const mayName = mayNameIds(body);
    const visitor: LineVisitor = {
      line: (line) => {
        const isOwn = (projectId ?? line.projectId) === this.#projectId;
        if (isOwn) this.#look(line, { spans, mayName, found });
      },
      unreadable: (_, line) => {
        if (hasOneOf(spans.of(line), this.#idTexts)) doubtful++;
      },
    };
    const frame: StoredFrame = {
      ...name,
      ...{ epoch: 1, projectId: undefined, messageId: "", storedAtMs: 0, data: body },
    };
    for (const _ of this.#lines.read(frame, visitor));
    if (found.size === 0) return { erased: 0, kept: 0, data: body, doubtful };
    const kept = linesOf(body).flatMap((line, index) => {
      const stays = found.has(index) ? found.get(index) : line;
      return stays === undefined || isBlank(stays) ? [] : [stays];
    });
    return { erased: found.size, kept: kept.length, data: Buffer.concat(kept), doubtful };
  }

  #look(line: StoredLine, { spans, mayName, found }: Looking): void {
    const { line: at, distinctId } = line;
    if (this.#ids.has(distinctId)) {
      const isOnGroup = line.usageClass === "group_identify" && line.effect().group !== undefined;
      found.set(at, isOnGroup ? groupAlone(spans.of(at)) : undefined);
      return;
    }
    if (!mayName) return;
    const text = spans.of(at);
    const isNamed = mayNameIds(text) && namedIds(text).some(({ id }) => this.#ids.has(id));
    if (isNamed) found.set(at, endedLine(withoutNamedIds(text, this.#ids, distinctId)));
  }
}

interface Looking {
  readonly spans: LineSpans;
  readonly mayName: boolean;
  readonly found: Map<number, Buffer | undefined>;
}

function endedLine(line: Buffer): Buffer {
  return line.at(-1) === Ascii.LineFeed ? line : Buffer.concat([line, Buffer.from("\n")]);
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

/** Finds lines by index, which must not decrease. */
class LineSpans {
  readonly #body: Buffer;
  #line = 0;
  #start = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  of(line: number): Buffer {
    for (; this.#line < line; this.#line++)
      this.#start = this.#body.indexOf(Ascii.LineFeed, this.#start) + 1;
    const end = this.#body.indexOf(Ascii.LineFeed, this.#start);
    return this.#body.subarray(this.#start, end < 0 ? this.#body.length : end);
  }
}
