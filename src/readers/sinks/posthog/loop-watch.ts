// Finds out whether what a sink sends comes back to it: where the upstream is a gateway in front of
// the streams that it reads, each event is sent again without end. That uuids come again is a hint
// and no more, since clients send events twice, too. On a hint one event leaves with a mark that
// only the upstream is told. When that is read in the streams, in the project that the mark names,
// it is proven: in another one it is an upstream that passes on what it gets.

import { randomUUID } from "node:crypto";
import type { SinkRecord } from "../sink-records.ts";

type Place = Pick<SinkRecord, "uuid" | "sequence">;

/** Sequences by uuid. */
type Known = Map<string, number>;

/** When there are so many, those before them are forgotten. */
const newestMax = 2_048;
/** Each remembers a sixteenth of the uuids, and so reaches back sixteen times as far. */
const reachesMax = 5;
const againMax = 8;
const markAgainMs = 60_000;

export class LoopWatch {
  readonly #monotonicMs: () => number;
  readonly #mark = Buffer.from(randomUUID());
  /** The first is of all events, the next of every sixteenth, and so on. */
  readonly #newest = Array.from({ length: reachesMax }, (): Known => new Map());
  readonly #before = Array.from({ length: reachesMax }, (): Known => new Map());
  /** Events whose uuid came again, since the last mark. */
  #again = 0;
  #marked: Place | undefined;
  #markedMonotonicMs = Number.NEGATIVE_INFINITY;
  #isProven = false;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** An event has come back. */
  get isProven(): boolean {
    return this.#isProven;
  }

  /** To be called with what is read, before it is sent. */
  look(events: readonly SinkRecord[]): void {
    for (const event of events) {
      if (this.#marked !== undefined) this.#isProven ||= this.#hasOwnMark(event);
      if (!this.#comesAgain(event)) continue;
      const nowMs = this.#monotonicMs();
      if (++this.#again < againMax || nowMs - this.#markedMonotonicMs < markAgainMs) continue;
      this.#marked = { uuid: event.uuid, sequence: event.sequence };
      this.#markedMonotonicMs = nowMs;
      this.#again = 0;
    }
  }

  /** What the event is to be marked with; undefined for nearly all. */
  markOf({ uuid, sequence, projectId }: SinkRecord): string | undefined {
    const isIt = this.#marked?.uuid === uuid && this.#marked.sequence === sequence;
    return isIt ? `${this.#mark}:${projectId}` : undefined;
  }

  /** Nearly all have no mark, which the first look finds out. */
  #hasOwnMark(event: SinkRecord): boolean {
    const bytes = bytesOf(event);
    return bytes.includes(this.#mark) && bytes.includes(`${this.#mark}:${event.projectId}"`);
  }

  /** An event that is read again from its own place does not count. */
  #comesAgain({ uuid, sequence }: Place): boolean {
    let comesAgain = false;
    for (let reach = 0; reach < reachesMax; reach++) {
      if (reach > 0 && uuid.at(-reach) !== "0") break;
      const newest = this.#newest[reach] as Known;
      const known = newest.get(uuid) ?? this.#before[reach]?.get(uuid);
      if (known !== undefined) comesAgain ||= known !== sequence;
      else if (newest.set(uuid, sequence).size === newestMax) {
        this.#before[reach] = newest;
        this.#newest[reach] = new Map();
      }
    }
    return comesAgain;
  }
}

function bytesOf({ properties: { buffer, byteOffset, length } }: SinkRecord): Buffer {
  return Buffer.from(buffer, byteOffset, length);
}
