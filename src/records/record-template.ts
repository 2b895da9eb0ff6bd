// The constant text of the records of one request, as bytes that are copied into each record.
// Writing a string into a frame takes V8 four times as long as copying bytes. Text that requests
// have in common is cached for the next request. All of the text is ASCII.

import { Buffer } from "node:buffer";
import type { Lane } from "../platform/base/lane.ts";
import { storedTimestampBytes } from "./timestamp.ts";
import { uuidBytes } from "./uuid.ts";
import { kinds, type Verdict } from "./verdict.ts";

/** Values that all records of a request share. */
export interface RecordContext {
  readonly projectId: string;
  readonly lane: Lane;
  readonly receivedAtMs: number;
  /** Client's time of sending in ms; NaN omits `sent_at` from the records. */
  readonly sentAtMs: number;
  /** Address of the client; "" omits `ip` from the records. */
  readonly clientAddress: string;
}

const opening = '{"uuid":"';
const beforeReceivedAt = '","received_at":"';
/** Offset of the event's uuid in a record. */
export const uuidAt = opening.length;
/** Offset of the time of receipt in `#received`, the text that follows the timestamp. */
const receivedAtStart = beforeReceivedAt.length;
/**
 * Number of cached heads, one per project. At most about as many projects send at the same time.
 */
const headsMax = 1_024;

/**
 * Returns the texts before the properties, two for each kind: without a person profile, and with
 * one.
 */
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

/** The constant text of one request. */
export class RecordTemplate {
  /** Beginning of a record up to its event, with spaces at `uuidAt` in place of the id. */
  readonly head: Buffer;
  readonly receivedAtMs: number;
  /**
   * Whether the request states when it was sent. If it does, the stored timestamps may differ from
   * those that the client sent.
   */
  readonly hasSentAt: boolean;
  readonly #received: Buffer;
  /** The text of the members `sent_at` and `ip`, if they are known. */
  readonly #origin: string;
  readonly #tails: readonly Buffer[];
  /**
   * For each tail, the complete text from after the timestamp to the properties. Created for each
   * tail that a record after the first needs.
   */
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

  /** Returns the size in bytes of the text from after the timestamp to before the properties. */
  endBytes(verdict: Verdict): number {
    return this.#received.length + this.#origin.length + this.#tails[tailIndex(verdict)]!.length;
  }

  writeEnd(verdict: Verdict, target: Buffer, at: number): number {
    const index = tailIndex(verdict);
    if (!this.#isFirst) return at + this.#endAt(index).copy(target, at);
    // Most requests have one record, so the first record copies the pieces one by one. They are
    // joined only for the records after it.
    this.#isFirst = false;
    let end = at + this.#received.copy(target, at);
    if (this.#origin !== "") end += target.write(this.#origin, end, "latin1");
    return end + this.#tails[index]!.copy(target, end);
  }

  /** Writes the time of receipt as the timestamp of a record. */
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

/** Creates the template of each request. */
export class RecordTemplates {
  readonly #heads = new Map<string, Buffer>();
  // The texts of the last request are cached: many requests arrive in the same millisecond, and
  // requests of one project often follow each other.
  #lastProjectId: string | undefined = undefined;
  #lastHead: Buffer = Buffer.alloc(0);
  #receivedAtMs = Number.NaN;
  #received: Buffer = Buffer.alloc(0);
  #sentAtMs = Number.NaN;
  #sentAt = "";

  templateOf(context: RecordContext): RecordTemplate {
    const { projectId, receivedAtMs, sentAtMs, clientAddress } = context;
    const sentAt = Number.isNaN(sentAtMs) ? "" : this.#sentAtOf(sentAtMs);
    const origin = clientAddress === "" ? sentAt : `${sentAt}"ip":"${clientAddress}",`;
    return new RecordTemplate(context, {
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
