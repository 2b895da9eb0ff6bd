// An event as the gateway writes its line. A batch holds ten thousands of them while it is written,
// so each is small: what all lines of a request have in common they share, and of the frame's bytes
// a view is made only when somebody asks for it.

import { Buffer } from "node:buffer";
import type { StoredFrame } from "../stream/stored-frame.ts";
import type { SinkRecord } from "./sink-target.ts";

export type FrameOfRecords = Pick<
  StoredFrame,
  "stream" | "sequence" | "storedAtMs" | "projectId" | "data"
>;

/** What lines that came together have in common, but for their project. */
export type SharedFields = Pick<
  SinkRecord,
  "receivedAtMs" | "timestampSentMs" | "sentAtMs" | "ip" | "kind" | "personProfile" | "historical"
>;

/** Where a line stands; `body` is the frame's data. */
export interface LinePlace {
  readonly frame: FrameOfRecords;
  readonly body: Buffer;
  readonly line: number;
  readonly start: number;
  readonly end: number;
}

interface OwnFields {
  readonly uuid: string;
  readonly projectId: string;
  readonly event: string;
  readonly distinctId: string;
  readonly timestampMs: number;
  /** Within the body. */
  readonly propertiesStart: number;
  readonly propertiesEnd: number;
  readonly replaced: Buffer | undefined;
  readonly set: Buffer | undefined;
  readonly setOnce: Buffer | undefined;
  readonly unset: Buffer | undefined;
}

const replacedMember = Buffer.from('{"$replaced":');

/** The properties of a record with its `replaced` as their member `$replaced`. */
export function withReplaced(properties: Buffer, replaced: Buffer | undefined): Buffer {
  if (replaced === undefined) return properties;
  const rest = properties.subarray(1);
  const isEmpty = rest.toString("latin1", 0, rest.length - 1).trim() === "";
  return Buffer.concat([replacedMember, replaced, Buffer.from(isEmpty ? "" : ","), rest]);
}

export class WrittenRecord implements SinkRecord {
  readonly line: number;
  readonly uuid: string;
  readonly projectId: string;
  readonly event: string;
  readonly distinctId: string;
  readonly timestampMs: number;
  readonly set: Buffer | undefined;
  readonly setOnce: Buffer | undefined;
  readonly unset: Buffer | undefined;
  personUuid = "";
  readonly #frame: FrameOfRecords;
  readonly #shared: SharedFields;
  readonly #body: Buffer;
  readonly #start: number;
  readonly #end: number;
  readonly #propertiesStart: number;
  readonly #propertiesEnd: number;
  readonly #replaced: Buffer | undefined;

  constructor(place: LinePlace, own: OwnFields, shared: SharedFields) {
    this.line = place.line;
    this.uuid = own.uuid;
    this.projectId = own.projectId;
    this.event = own.event;
    this.distinctId = own.distinctId;
    this.timestampMs = own.timestampMs;
    this.set = own.set;
    this.setOnce = own.setOnce;
    this.unset = own.unset;
    this.#frame = place.frame;
    this.#shared = shared;
    this.#body = place.body;
    this.#start = place.start;
    this.#end = place.end;
    this.#propertiesStart = own.propertiesStart;
    this.#propertiesEnd = own.propertiesEnd;
    this.#replaced = own.replaced;
  }

  get stream(): string {
    return this.#frame.stream;
  }

  get sequence(): number {
    return this.#frame.sequence;
  }

  get storedAtMs(): number {
    return this.#frame.storedAtMs;
  }

  get receivedAtMs(): number {
    return this.#shared.receivedAtMs;
  }

  get timestampSentMs(): number {
    return this.#shared.timestampSentMs;
  }

  get sentAtMs(): number {
    return this.#shared.sentAtMs;
  }

  get ip(): string {
    return this.#shared.ip;
  }

  get kind(): string {
    return this.#shared.kind;
  }

  get personProfile(): boolean {
    return this.#shared.personProfile;
  }

  get historical(): boolean {
    return this.#shared.historical;
  }

  get properties(): Buffer {
    const properties = this.#body.subarray(this.#propertiesStart, this.#propertiesEnd);
    return withReplaced(properties, this.#replaced);
  }

  get text(): Buffer {
    return this.#body.subarray(this.#start, this.#end);
  }
}
