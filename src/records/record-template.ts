// The text that is the same in all records of one request. It is stored as bytes, because copying
// bytes takes a quarter of the time of writing a string.

import { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import type { Lane } from "../platform/base/lane.ts";
import { SentWith } from "../platform/base/sent-with.ts";
import { storedTimestampBytes } from "./timestamp.ts";
import { uuidBytes } from "./uuid.ts";
import { kinds, type Verdict } from "./verdict.ts";

export interface RecordContext {
  readonly projectId: string;
  readonly lane: Lane;
  readonly receivedAtMs: number;
  readonly sentAtMs: number;
  readonly clientAddress: string;
  /** The version of the project's rules, if it has any. Records that they change have it. */
  readonly rulesVersion?: number | undefined;
}

const opening = '{"uuid":"';
const beforeReceivedAt = '","received_at":"';
export const uuidAt = opening.length;
const receivedAtStart = beforeReceivedAt.length;
const projectsMax = 1_024;
const beforeAddress = Buffer.from('"ip":"');
const afterAddress = Buffer.from('",');
const noBytes = Buffer.alloc(0);

function tailsOf(historical: boolean): readonly Buffer[] {
  return kinds.flatMap((kind) =>
    [false, true].map((personProfile) =>
      Buffer.from(
        `"kind":"${kind}","person_profile":${personProfile},"historical":${historical},"properties":`,
        "latin1",
      ),
    ),
  );
}

const liveTails = tailsOf(false);
const historicalTails = tailsOf(true);

/**
 * Copies all bytes to the target, which must have space for them. Returns their end. Takes less
 * time than `Buffer.copy`, which checks and computes a range.
 */
export function writeWhole(bytes: Buffer, target: Buffer, at: number): number {
  target.set(bytes, at);
  return at + bytes.length;
}

function writeLatin1(text: string, target: Buffer, at: number): number {
  // For a text as short as an address, a call of `Buffer.write` takes longer.
  for (let index = 0; index < text.length; index++) target[at + index] = text.charCodeAt(index);
  return at + text.length;
}

export class RecordTemplate {
  /** The beginning of a record, up to the event. At `uuidAt`, it has spaces for the uuid. */
  readonly head: Buffer;
  readonly receivedAtMs: number;
  readonly hasSentAt: boolean;
  readonly #received: Buffer;
  /** The member `sent_at`; empty without it. */
  readonly #sentAt: Buffer;
  readonly #address: string;
  /** The member `rules`; empty without rules. */
  readonly #rules: Buffer;
  readonly #tails: readonly Buffer[];
  #ends: (Buffer | undefined)[] | undefined = undefined;
  #isFirst = true;

  constructor(
    context: RecordContext,
    { project, received, sentAt }: { project: ProjectTexts; received: Buffer; sentAt: Buffer },
  ) {
    this.head = project.head;
    this.receivedAtMs = context.receivedAtMs;
    this.hasSentAt = sentAt.length > 0;
    this.#received = received;
    this.#sentAt = sentAt;
    this.#address = context.clientAddress;
    this.#rules = project.rules;
    this.#tails = context.lane === "historical" ? historicalTails : liveTails;
  }

  endBytes(verdict: Verdict): number {
    const address = this.#address;
    let bytes = this.#received.length + this.#sentAt.length;
    if (address !== "") bytes += beforeAddress.length + address.length + afterAddress.length;
    if (verdict.changedByRules) bytes += this.#rules.length;
    return bytes + this.#tails[tailIndex(verdict)]!.length;
  }

  writeEnd(verdict: Verdict, target: Buffer, at: number): number {
    if (!this.#isFirst) return writeWhole(this.#endOf(verdict), target, at);
    // Joining the pieces is useful only from the second record on, and most requests have only one.
    this.#isFirst = false;
    return this.#writePieces(verdict, target, at);
  }

  #writePieces(verdict: Verdict, target: Buffer, at: number): number {
    let end = writeWhole(this.#received, target, at);
    if (this.hasSentAt) end = writeWhole(this.#sentAt, target, end);
    if (this.#address !== "") {
      end = writeWhole(beforeAddress, target, end);
      end = writeLatin1(this.#address, target, end);
      end = writeWhole(afterAddress, target, end);
    }
    if (verdict.changedByRules) end = writeWhole(this.#rules, target, end);
    return writeWhole(this.#tails[tailIndex(verdict)]!, target, end);
  }

  writeReceivedAt(target: Buffer, at: number): number {
    return (
      at + this.#received.copy(target, at, receivedAtStart, receivedAtStart + storedTimestampBytes)
    );
  }

  #endOf(verdict: Verdict): Buffer {
    const tail = tailIndex(verdict);
    const index = verdict.changedByRules ? tail + this.#tails.length : tail;
    this.#ends ??= new Array(2 * this.#tails.length).fill(undefined);
    let end = this.#ends[index];
    if (end === undefined) {
      end = Buffer.allocUnsafe(this.endBytes(verdict));
      this.#writePieces(verdict, end, 0);
      this.#ends[index] = end;
    }
    return end;
  }
}

function tailIndex({ kind, personProfile }: Verdict): number {
  return personProfile ? 2 * kind + 1 : 2 * kind;
}

/** The texts of a project's records. */
interface ProjectTexts {
  readonly id: string;
  readonly head: Buffer;
  rulesVersion: number | undefined;
  /** The member `rules` of the version; empty without one. */
  rules: Buffer;
}

export class RecordTemplates {
  readonly #projects = new Map<string, ProjectTexts>();
  #lastProject: ProjectTexts | undefined = undefined;
  #receivedAtMs = Number.NaN;
  #received: Buffer = Buffer.alloc(0);
  #sentAtMs = Number.NaN;
  #sentAt = noBytes;

  templateOf(context: RecordContext): RecordTemplate {
    const { receivedAtMs, sentAtMs } = context;
    return new RecordTemplate(context, {
      project: this.#textsOf(context),
      received: this.#receivedOf(receivedAtMs),
      sentAt: Number.isNaN(sentAtMs) ? noBytes : this.#sentAtOf(sentAtMs),
    });
  }

  #textsOf({ projectId, rulesVersion }: RecordContext): ProjectTexts {
    const last = this.#lastProject;
    const texts = last?.id === projectId ? last : this.#projectOf(projectId);
    if (texts.rulesVersion !== rulesVersion) {
      texts.rulesVersion = rulesVersion;
      texts.rules =
        rulesVersion === undefined ? noBytes : Buffer.from(`"rules":${rulesVersion},`, "latin1");
    }
    return texts;
  }

  #projectOf(id: string): ProjectTexts {
    let project = this.#projects.get(id);
    if (project === undefined) {
      if (this.#projects.size >= projectsMax) this.#projects.clear();
      const room = " ".repeat(uuidBytes);
      const head = Buffer.from(`${opening}${room}","project_id":"${id}","event":`, "latin1");
      project = { id, head, rulesVersion: undefined, rules: noBytes };
      this.#projects.set(id, project);
    }
    this.#lastProject = project;
    return project;
  }

  #receivedOf(ms: number): Buffer {
    if (ms !== this.#receivedAtMs) {
      this.#receivedAtMs = ms;
      this.#received = Buffer.from(`${beforeReceivedAt}${new Date(ms).toISOString()}",`, "latin1");
    }
    return this.#received;
  }

  #sentAtOf(ms: number): Buffer {
    if (ms !== this.#sentAtMs) {
      this.#sentAtMs = ms;
      this.#sentAt = Buffer.from(`"sent_at":"${new Date(ms).toISOString()}",`, "latin1");
    }
    return this.#sentAt;
  }
}

const beforeTimestamp = Buffer.from(',"timestamp":"');
const receivedAtOfRecord = Buffer.from(beforeReceivedAt);
const beforeTimestampSent = Buffer.from('","timestamp_sent":"');
const beforeKind = Buffer.from('"kind":"');
const uuidEnd = uuidAt + uuidBytes;
/** One call that hashes all parts takes a third of the time of several calls. */
const parts = Buffer.allocUnsafe(16_384);

/**
 * Returns a hash of the values that the client sent. It is the same if the client sends the event
 * again. `sentWith` states which values the gateway has added.
 */
export function eventIdentity(bytes: Buffer, sentWith: SentWith): string {
  const timestampAt = bytes.indexOf(beforeTimestamp, uuidEnd);
  const timeFrom = timestampAt + beforeTimestamp.length;
  const timeTo = timeFrom + storedTimestampBytes;
  const receivedAt = bytes.indexOf(receivedAtOfRecord, timeTo);
  const kindAt = bytes.indexOf(beforeKind, receivedAt);
  const key = bytes.length > parts.length ? Buffer.allocUnsafe(bytes.length) : parts;
  let at = bytes.copy(key, 0, sentWith === SentWith.Uuid ? uuidAt : uuidEnd, timestampAt);
  if (sentWith === SentWith.Time) {
    const isCorrected = receivedAt > timeTo;
    const sentFrom = isCorrected ? timeTo + beforeTimestampSent.length : timeFrom;
    at += bytes.copy(key, at, sentFrom, sentFrom + storedTimestampBytes);
  }
  at += bytes.copy(key, at, kindAt);
  return hash("sha256", key.subarray(0, at), "base64url");
}
