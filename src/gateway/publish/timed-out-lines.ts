// Recognizes the retry of a small request that was answered with `timeout` and has events without
// uuids. The retry waits for the frame of the first attempt, and its lines are not stored again. A
// request counts as a retry only if it is from the same address.

import { createHash } from "node:crypto";
import type { ErrorCode } from "../../platform/base/errors.ts";
import { RetryMemory } from "../../platform/base/retry-memory.ts";
import { SentWith, type SentWithRuns } from "../../platform/base/sent-with.ts";
import type { RequestSpan } from "../../platform/base/tracing.ts";
import { TurnBudget } from "../../platform/base/turn-budget.ts";
import type { Expired } from "./expiry.ts";
import { Fate, type Frame } from "./frame.ts";
import type { FrameOutcome, FrameWaiter, RequestWaiter } from "./port.ts";

const rememberedCostPerTurn = 4_194_304;
const eventCost = 1_024;
const lineFeed = 0x0a;

interface TimedOutLinesOptions {
  /** Returns an id of an event. The id must be the same whenever the client sends the event. */
  readonly identify: (record: Buffer, sentWith: SentWith) => string;
  readonly monotonicMs: () => number;
}

export class UuidlessLines implements FrameWaiter {
  readonly request: RequestWaiter;
  readonly runs: SentWithRuns;

  constructor(request: RequestWaiter, runs: SentWithRuns) {
    this.request = request;
    this.runs = runs;
  }

  get span(): RequestSpan | undefined {
    return this.request.span;
  }

  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
    messageBytes: number,
  ): void {
    this.request.frameSettled(outcome, code, events, bytes, messageBytes);
  }
}

export class TimedOutLines {
  readonly #identify: TimedOutLinesOptions["identify"];
  readonly #fates: RetryMemory<Fate>;
  readonly #budget = new TurnBudget(rememberedCostPerTurn);

  constructor({ identify, monotonicMs }: TimedOutLinesOptions) {
    this.#identify = identify;
    this.#fates = new RetryMemory(monotonicMs);
  }

  remember(frame: Frame, lines: UuidlessLines, range: Expired["ranges"][number]): void {
    if (this.#budget.isSpent) return;
    frame.fate ??= new Fate(frame);
    this.#fates.remember(this.#nameOf(frame, lines, range), frame.fate);
  }

  /**
   * If the frame of a timed-out request has the same lines, removes them from `frame` and returns
   * the state of the other frame.
   */
  takeOut(frame: Frame, lines: UuidlessLines): Fate | undefined {
    if (this.#fates.isEmpty) return undefined;
    const name = this.#nameOf(frame, lines, { start: frame.joinedBytes, end: frame.length });
    let fate: Fate | undefined;
    do fate = this.#fates.take(name);
    while (fate !== undefined && fate.frame === undefined && !fate.isStored);
    if (fate === undefined) return undefined;
    const known = fate;
    frame.rollback();
    lines.request.whenEnded((isStored) => {
      if (!isStored) this.#fates.remember(name, known);
    });
    return known;
  }

  #nameOf(
    { buffer }: Frame,
    { request, runs }: UuidlessLines,
    { start, end }: Expired["ranges"][number],
  ): string {
    const hash = createHash("sha256").update(request.senderAddress);
    let sentWith: SentWith = SentWith.Uuid;
    let run = 0;
    for (let from = start, line = 0; from < end; line++) {
      if (line === runs[run]) {
        sentWith = runs[run + 1] as SentWith;
        run += 2;
      }
      const feedAt = buffer.indexOf(lineFeed, from);
      const to = feedAt < 0 ? end : Math.min(end, feedAt + 1);
      hash.update(`\n${this.#identify(buffer.subarray(from, to), sentWith)}`);
      this.#budget.spend(to - from + eventCost);
      from = to;
    }
    return hash.digest("base64url");
  }
}
