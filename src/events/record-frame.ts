// The constant text of one request's records, as bytes that are copied into each: to have V8 write
// a string into a frame takes four times as long as to copy it. What requests have in common is
// kept for the next. ASCII.

import { Buffer } from "node:buffer";
import type { Lane } from "../base/types.ts";
import { storedTimestampBytes } from "./timestamp.ts";
import { uuidBytes } from "./uuid.ts";
import { kinds, type Verdict } from "./verdict.ts";

/** What all records of a request share. */
export interface RecordContext {
  readonly projectId: string;
  readonly lane: Lane;
  readonly receivedAtMs: number;
  /** NaN leaves the field out. */
  readonly sentAtMs: number;
  /** "" leaves the field out. */
  readonly clientAddress: string;
}

const opening = '{"uuid":"';
const beforeReceivedAt = '","received_at":"';
/** Where in a record the id stands. */
export const uuidAt = opening.length;
/** Where in the text behind the timestamp the time of receipt stands. */
const receivedAtStart = beforeReceivedAt.length;
/** So many heads are kept: as many as there are projects that send at about the same time. */
const headsMax = 1_024;

/** Two tails for each kind: without a person profile, and with one. */
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

/** Made once a request. */
export class RecordFrame {
  /** A record from its beginning to its event, with room for the id at `uuidAt`. */
  readonly head: Buffer;
  readonly receivedAtMs: number;
  /** The request says when it was sent, so timestamps may be stored otherwise than they came. */
  readonly hasSentAt: boolean;
  readonly #received: Buffer;
  /** `sent_at` and `ip`, where they are known. */
  readonly #origin: string;
  readonly #tails: readonly Buffer[];
  /** What is behind the timestamp, in one piece, for each tail that a later record had. */
  #ends: (Buffer | undefined)[] | undefined = undefined;
  #isFirst = true;

  constructor(
    context: RecordContext,
    { head, received, origin }: { head: Buffer; received: Buffer; origin: string },
  ) {
    this.head = head;
    this.receivedAtMs = context.receivedAtMs;
    this.hasSentAt = !Number.isNaN(context.sentAtMs);
    this.#received = received;
    this.#origin = origin;
    this.#tails = context.lane === "historical" ? historicalTails : liveTails;
  }

  /** Bytes from behind the timestamp to before the properties. */
  endBytes(verdict: Verdict): number {
    return this.#received.length + this.#origin.length + this.#tails[tailIndex(verdict)]!.length;
  }

  writeEnd(verdict: Verdict, target: Buffer, at: number): number {
    const index = tailIndex(verdict);
    if (!this.#isFirst) return at + this.#endAt(index).copy(target, at);
    // Most requests have one record: the pieces are worth putting together for others only.
    this.#isFirst = false;
    let end = at + this.#received.copy(target, at);
    if (this.#origin !== "") end += target.write(this.#origin, end, "latin1");
    return end + this.#tails[index]!.copy(target, end);
  }

  /** The time of receipt as a record's timestamp. */
  writeReceivedAt(target: Buffer, at: number): number {
    return (
      at + this.#received.copy(target, at, receivedAtStart, receivedAtStart + storedTimestampBytes)
    );
  }

  #endAt(index: number): Buffer {
    this.#ends ??= this.#tails.map(() => undefined);
    const known = this.#ends[index];
    if (known !== undefined) return known;
    const end = Buffer.concat([
      this.#received,
      Buffer.from(this.#origin, "latin1"),
      this.#tails[index]!,
    ]);
    this.#ends[index] = end;
    return end;
  }
}

function tailIndex({ kind, personProfile }: Verdict): number {
  return personProfile ? 2 * kind + 1 : 2 * kind;
}

/** Makes the frames of requests. */
export class RecordFrames {
  readonly #heads = new Map<string, Buffer>();
  // Many requests come in a millisecond, and one project's come one behind another.
  #lastProjectId: string | undefined = undefined;
  #lastHead: Buffer = Buffer.alloc(0);
  #receivedAtMs = Number.NaN;
  #received: Buffer = Buffer.alloc(0);
  #sentAtMs = Number.NaN;
  #sentAt = "";

  frameOf(context: RecordContext): RecordFrame {
    const { projectId, receivedAtMs, sentAtMs, clientAddress } = context;
    const sentAt = Number.isNaN(sentAtMs) ? "" : this.#sentAtOf(sentAtMs);
    const origin = clientAddress === "" ? sentAt : `${sentAt}"ip":"${clientAddress}",`;
    return new RecordFrame(context, {
      head: this.#headOf(projectId),
      received: this.#receivedOf(receivedAtMs),
      origin,
    });
  }

  #headOf(projectId: string): Buffer {
    if (projectId === this.#lastProjectId) return this.#lastHead;
    let head = this.#heads.get(projectId);
    if (head === undefined) {
      if (this.#heads.size >= headsMax) this.#heads.clear();
      const room = " ".repeat(uuidBytes);
      head = Buffer.from(`${opening}${room}","project_id":"${projectId}","event":`, "latin1");
      this.#heads.set(projectId, head);
    }
    this.#lastProjectId = projectId;
    this.#lastHead = head;
    return head;
  }

  #receivedOf(ms: number): Buffer {
    if (ms !== this.#receivedAtMs) {
      this.#receivedAtMs = ms;
      this.#received = Buffer.from(`${beforeReceivedAt}${new Date(ms).toISOString()}",`, "latin1");
    }
    return this.#received;
  }

  #sentAtOf(ms: number): string {
    if (ms !== this.#sentAtMs) {
      this.#sentAtMs = ms;
      this.#sentAt = `"sent_at":"${new Date(ms).toISOString()}",`;
    }
    return this.#sentAt;
  }
}
