// A request whose lines wait for their PubAcks: collects the outcome of every frame that carries one of them, then answers,
// once. Never 200 while one frame is open, refused or unknown. Also says to the project's meter what the request came to.

import type { ErrorCode } from "../errors.ts";
import type { Exchange, FrameOutcome, FrameWaiter, Lane, ProjectMeter } from "../types.ts";
import type { Envelope } from "./envelope.ts";
import type { IntakeMetrics, Tally } from "./tally.ts";

// Some frames of a large request may be stored while another is refused, so none of these says that nothing is.
const details: Partial<Record<ErrorCode, string>> = {
  timeout: "The store did not acknowledge in time, so events may be stored or not: send the request again",
  store_full: "The store is full: send the request again later",
  unavailable: "The store cannot be reached: send the request again later",
};

export interface PendingOf extends Envelope {
  readonly exchange: Exchange;
  /** What the project's meter took for it. */
  readonly events: number;
  readonly bytes: number;
}

export class PendingRequest implements FrameWaiter {
  readonly #exchange: Exchange;
  readonly #events: number;
  readonly #bytes: number;
  readonly #tally: Tally;
  readonly #lane: Lane;
  readonly #meter: ProjectMeter;
  readonly #metrics: IntakeMetrics;
  // The intake's own hold, so that no early outcome answers before the last line is placed.
  #framesOpen = 1;
  #failure: ErrorCode | undefined = undefined;
  #room: { readonly framesMax: number; readonly resolve: () => void } | undefined = undefined;

  constructor(request: PendingOf, tally: Tally, metrics: IntakeMetrics) {
    this.#exchange = request.exchange;
    this.#events = request.events;
    this.#bytes = request.bytes;
    this.#tally = tally;
    this.#lane = request.lane;
    this.#meter = request.project.meter;
    this.#metrics = metrics;
  }

  /** One more frame carries lines of this request. */
  expectFrame(): void {
    this.#framesOpen++;
  }

  /** The request cannot come to a 200 any more: placing the rest of it is no use. */
  get failed(): boolean {
    return this.#failure !== undefined;
  }

  /** Fulfilled when at most so many of its frames are without an outcome. One caller at a time. */
  framesAtMost(framesMax: number): Promise<void> | undefined {
    if (this.#framesOpen - 1 <= framesMax) return undefined;
    return new Promise((resolve) => {
      this.#room = { framesMax, resolve };
    });
  }

  frameSettled(outcome: FrameOutcome, code: ErrorCode | undefined): void {
    // Unknown outweighs refused: the client must not be told less doubt than there is.
    if (outcome === "unknown") this.#failure = "timeout";
    else if (outcome === "refused") this.#failure ??= code ?? "unavailable";
    this.release();
  }

  /** Gives up one hold; the last one answers. */
  release(): void {
    this.#framesOpen--;
    if (this.#room !== undefined && this.#framesOpen - 1 <= this.#room.framesMax) {
      this.#room.resolve();
      this.#room = undefined;
    }
    if (this.#framesOpen > 0) return;
    if (this.#failure !== undefined) {
      this.giveBack();
      this.#exchange.answerProblem({ code: this.#failure, detail: details[this.#failure] ?? "" });
      return;
    }
    this.#metrics.events(this.#lane, "none", this.#tally.accepted);
    this.#meter.countAccepted(this.#tally.accepted);
    // Not before: a request that is refused is sent again, and would count each time.
    if (this.#tally.dropped > 0) this.#meter.countDropped(this.#tally.dropped);
    this.#exchange.answerStored(this.#tally);
  }

  /**
   * The request ends in a 503: what it cost its project is there again for the retry. The last hold calls it, or, where a bug keeps the
   * intake from giving up its own, the intake.
   */
  giveBack(): void {
    this.#meter.giveBack(this.#events, this.#bytes);
  }
}
