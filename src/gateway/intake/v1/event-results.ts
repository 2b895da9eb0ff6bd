// Stores the outcome of each event of a v1 request, and writes the answer, which lists the outcomes
// by uuid. A batch may have half a million events. So each outcome takes only a few bytes of typed
// arrays.

import { Buffer } from "node:buffer";
import {
  type ErrorCode,
  errorTable,
  type ItemErrorCode,
  type Problem,
} from "../../../platform/base/errors.ts";
import { type DropCode, dropTable, warningCodes } from "../../../platform/base/warnings.ts";
import { uuidBytes } from "../../../records/uuid.ts";
import type { Verdict } from "../../../records/verdict.ts";
import type { Exchange, V1Request } from "../../http/port.ts";
import type { FrameOutcome } from "../../publish/port.ts";
import type { Explanation } from "../hints.ts";
import type { LoopShare } from "../loop-share.ts";
import { type FilterCode, Tally } from "../tally.ts";
import type { UuidList } from "./uuids.ts";

type DetailCode = ErrorCode | DropCode | FilterCode | "performance_event";

const State = {
  Waiting: 0,
  Dropped: 1,
  Placed: 2,
  Stored: 3,
  Refused: 4,
  /** The answer does not list this event, because it lists another event with the same uuid. */
  Unnamed: 5,
} as const;
type State = (typeof State)[keyof typeof State];

const detailCodes: readonly DetailCode[] = [
  ...(Object.keys(errorTable) as ErrorCode[]),
  ...(Object.keys(dropTable) as DropCode[]),
  "performance_event",
  "dropped_by_rule",
  "quarantined",
];
const detailIndexes = new Map(detailCodes.map((code, index) => [code, index]));

/** Writing this number of results takes half a millisecond. */
const writtenAtOnceMax = 4_096;
const opening = '{"results":{';
const closing = "}}\n";

export class EventResults {
  readonly #uuids: UuidList;
  readonly #share: LoopShare;
  readonly #states: Uint8Array;
  /**
   * For a dropped or refused event, the index of its error in `detailCodes`. For other events, the
   * bits of their warnings.
   */
  readonly #details: Uint32Array;
  #hints: Map<number, string> | undefined = undefined;

  constructor(uuids: UuidList, share: LoopShare) {
    this.#uuids = uuids;
    this.#share = share;
    this.#states = new Uint8Array(uuids.length);
    this.#details = new Uint32Array(uuids.length);
  }

  dropped(index: number, code: DetailCode, hint = ""): void {
    this.#states[index] = State.Dropped;
    this.#details[index] = detailIndexes.get(code) ?? 0;
    if (hint === "") return;
    this.#hints ??= new Map();
    this.#hints.set(index, hint);
  }

  placed(index: number, warnings: number): void {
    this.#states[index] = State.Placed;
    this.#details[index] = warnings;
  }

  settled(
    { first, last }: { first: number; last: number },
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
  ): void {
    const isStored = outcome === "stored" || outcome === "duplicate";
    const detail =
      detailIndexes.get(outcome === "unknown" ? "timeout" : (code ?? "unavailable")) ?? 0;
    for (let index = first; index <= last; index++) {
      if (this.#states[index] !== State.Placed) continue;
      this.#states[index] = isStored ? State.Stored : State.Refused;
      if (!isStored) this.#details[index] = detail;
    }
  }

  storedWarnings(): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    for (let index = 0; index < this.#states.length; index++) {
      const bits = this.#states[index] === State.Stored ? this.#details[index]! : 0;
      for (let bit = 0; bits >>> bit !== 0; bit++) {
        if (((bits >>> bit) & 1) === 1) counts.set(bit, (counts.get(bit) ?? 0) + 1);
      }
    }
    return counts;
  }

  answer(v1: V1Request, notSent: ErrorCode | undefined): Promise<void> | undefined {
    this.#nameBlanksOnce();
    const writer = new ResultWriter({
      uuids: this.#uuids,
      states: this.#states,
      details: this.#details,
      hints: this.#hints,
      notSent,
    });
    if (this.#states.length <= writtenAtOnceMax) {
      writer.measure(this.#states.length);
      v1.answerResults(writer.write(this.#states.length), writer.hasRetry);
      return undefined;
    }
    return this.#answerInTurns(v1, writer);
  }

  /** Several events may have the nil or the max UUID. The answer lists only one event for each. */
  #nameBlanksOnce(): void {
    const states = this.#states;
    const rank = (index: number): number =>
      states[index] === State.Stored ? 0 : states[index] === State.Dropped ? 1 : 2;
    for (const indexes of this.#uuids.blanks) {
      let named = indexes[0];
      for (const index of indexes) if (rank(index) > rank(named!)) named = index;
      for (const index of indexes) if (index !== named) states[index] = State.Unnamed;
    }
  }

  async #answerInTurns(v1: V1Request, writer: ResultWriter): Promise<void> {
    const { length } = this.#states;
    for (let end = 0; end < length; ) {
      end = Math.min(length, end + writtenAtOnceMax);
      await this.#share.slice(() => writer.measure(end));
    }
    let text: Buffer = Buffer.alloc(0);
    for (let end = 0; end < length; ) {
      end = Math.min(length, end + writtenAtOnceMax);
      await this.#share.slice(() => {
        text = writer.write(end);
      });
    }
    v1.answerResults(text, writer.hasRetry);
  }
}

interface Outcomes {
  readonly uuids: UuidList;
  readonly states: Uint8Array;
  readonly details: Uint32Array;
  readonly hints: ReadonlyMap<number, string> | undefined;
  readonly notSent: ErrorCode | undefined;
}

class ResultWriter {
  hasRetry = false;
  readonly #of: Outcomes;
  readonly #texts = new Map<number, Buffer>();
  #bytes = opening.length + closing.length;
  #measuredEnd = 0;
  #text: Buffer | undefined = undefined;
  #at = 0;
  #writtenEnd = 0;

  constructor(outcomes: Outcomes) {
    this.#of = outcomes;
  }

  measure(end: number): void {
    for (; this.#measuredEnd < end; this.#measuredEnd++) {
      const index = this.#measuredEnd;
      if (this.#of.states[index] === State.Unnamed) continue;
      this.#bytes += uuidBytes + 3 + this.#textOf(index).length;
    }
  }

  write(end: number): Buffer {
    this.#text ??= this.#begin();
    const text = this.#text;
    for (; this.#writtenEnd < end; this.#writtenEnd++)
      if (this.#of.states[this.#writtenEnd] !== State.Unnamed)
        this.#writeResult(text, this.#writtenEnd);
    if (end < this.#of.states.length) return text;
    return text.subarray(0, this.#at + text.write(closing, this.#at, "latin1"));
  }

  #writeResult(text: Buffer, index: number): void {
    if (this.#at > opening.length) this.#at += text.write(",", this.#at, "latin1");
    this.#at += text.write('"', this.#at, "latin1");
    this.#of.uuids.write(text, this.#at, index);
    this.#at += uuidBytes;
    this.#at += text.write('"', this.#at, "latin1");
    this.#at += this.#textOf(index).copy(text, this.#at);
  }

  #begin(): Buffer {
    const text = Buffer.allocUnsafe(this.#bytes);
    this.#at = text.write(opening, 0, "latin1");
    return text;
  }

  #textOf(index: number): Buffer {
    const state = this.#of.states[index] as State;
    const detail = this.#of.details[index]!;
    const hint = this.#of.hints?.get(index);
    if (hint !== undefined) return Buffer.from(droppedText(detail, hint));
    const key = detail * 8 + state;
    let text = this.#texts.get(key);
    if (text === undefined) {
      text = Buffer.from(resultText(state, detail, this.#of.notSent ?? "unavailable"));
      this.#texts.set(key, text);
      if (state !== State.Stored && state !== State.Dropped) this.hasRetry = true;
    }
    return text;
  }
}

function droppedText(detail: number, hint: string): string {
  return `:{"result":"drop","details":"${detailCodes[detail]}","hint":${JSON.stringify(hint)}}`;
}

function resultText(state: State, detail: number, notSent: ErrorCode): string {
  switch (state) {
    case State.Stored: {
      if (detail === 0) return ':{"result":"ok"}';
      const warnings = warningCodes.filter((_, bit) => (detail & (1 << bit)) !== 0);
      return `:{"result":"warning","details":"${warnings.join(", ")}"}`;
    }
    case State.Dropped:
      return `:{"result":"drop","details":"${detailCodes[detail]}"}`;
    case State.Refused:
      return `:{"result":"retry","details":"${detailCodes[detail]}"}`;
    default:
      return `:{"result":"retry","details":"${notSent}"}`;
  }
}

const cannotAnswer: Problem = {
  code: "unavailable",
  detail: "The answer could not be created: send the request again",
};

export class ResultTally extends Tally {
  readonly #v1: V1Request;
  readonly #results: EventResults;

  constructor(v1: V1Request, results: EventResults) {
    super();
    this.#v1 = v1;
    this.#results = results;
  }

  override get answersInPart(): boolean {
    return true;
  }

  override drop(index: number, code: DropCode, explanation: Explanation): void {
    super.drop(index, code, explanation);
    this.#results.dropped(index, code, explanation.hint);
  }

  /** A removed event must have a result, because the client retries events without one. */
  override remove(index: number): void {
    super.remove(index);
    this.#results.dropped(index, "performance_event");
  }

  override filter(index: number, code: FilterCode): void {
    super.filter(index, code);
    this.#results.dropped(index, code);
  }

  override fail(index: number, code: ItemErrorCode, explanation: Explanation): void {
    super.fail(index, code, explanation);
    this.#results.dropped(index, code, explanation.hint);
  }

  override store(index: number, verdict: Verdict, hint: string): void {
    super.store(index, verdict, hint);
    this.#results.placed(index, verdict.warnings);
  }

  /** If only a part of the request is stored, the other warnings are counted at the retry. */
  protected override warningCounts(isWhole: boolean): ReadonlyMap<number, number> {
    return isWhole ? super.warningCounts(isWhole) : this.#results.storedWarnings();
  }

  override answer(exchange: Exchange, notSent: ErrorCode | undefined): void {
    this.#results.answer(this.#v1, notSent)?.catch(() => exchange.answerProblem(cannotAnswer));
  }
}
