// A request whose lines wait for their PubAcks. It is answered exactly once. The answer is never
// 200 while a frame is pending, refused or unknown. Events that are stored count as stored even if
// the answer is a 503.

import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import type { ErrorCode } from "../../platform/base/errors.ts";
import type { Lane } from "../../platform/base/lane.ts";
import type { RequestSpan } from "../../platform/base/tracing.ts";
import type { Exchange } from "../http/port.ts";
import type { MeteredProject, Taken } from "../projects/project.ts";
import type { FrameOutcome, Publisher, RequestWaiter } from "../publish/port.ts";
import type { ProjectShares } from "../streams/project-shares.ts";
import type { IntakeMetrics, Tally } from "./tally.ts";

// These texts do not state that nothing was stored, because some frames may be stored.
const details: Partial<Record<ErrorCode, string>> = {
  timeout:
    "The store did not acknowledge in time, so events may be stored or not: send the request again",
  store_full: "The store is full: send the request again later",
  project_full: "The project has filled its share of the store: send the request again later",
  unavailable: "The store did not accept the events in time: send the request again later",
  overloaded: "There is not enough memory to scan the rest of the body: send the request again",
};

/**
 * The data that stays in memory until the answer. It does not reference the Work, because the Work
 * holds the body.
 */
interface PendingOf {
  readonly exchange: Exchange;
  readonly lane: Lane;
  readonly project: MeteredProject;
  readonly taken: Taken;
  readonly tally: Tally;
}

export interface PendingReports {
  readonly metrics: IntakeMetrics;
  readonly publisher: Pick<Publisher, "refusalOf">;
  readonly shares?: ProjectShares | undefined;
  readonly clientWarnings?: ClientWarningTaker | undefined;
}

export class PendingRequest implements RequestWaiter {
  readonly #exchange: Exchange;
  readonly #tally: Tally;
  readonly #lane: Lane;
  readonly #project: MeteredProject;
  readonly #taken: Taken;
  readonly #reports: PendingReports;
  #isPlaced = false;
  // The number of frames without an outcome. It is one higher until the last line has been written
  // to a frame.
  #framesOpen = 1;
  #failure: ErrorCode | undefined = undefined;
  #firstFailure: ErrorCode | undefined = undefined;
  #failureDetail = "";
  #abandoned = false;
  #stored = 0;
  #storedBytes = 0;
  #duplicates = 0;
  #unknown = 0;
  #bytesUnderWay = 0;
  #isUnfit = false;
  #endCallbacks: ((isStored: boolean) => void)[] | undefined = undefined;
  #room: { readonly framesMax: number; readonly resolve: () => void } | undefined = undefined;

  constructor({ exchange, tally, lane, project, taken }: PendingOf, reports: PendingReports) {
    this.#exchange = exchange;
    this.#tally = tally;
    this.#lane = lane;
    this.#project = project;
    this.#taken = taken;
    this.#reports = reports;
  }

  get senderAddress(): string {
    return this.#exchange.senderAddress;
  }

  get span(): RequestSpan | undefined {
    return this.#exchange.span;
  }

  /**
   * `ownBytes` is the size of a frame that contains only lines of this request, and 0 for other
   * frames. Until the frame is stored, these bytes count towards the project's share.
   */
  expectFrame(ownBytes = 0): void {
    this.#framesOpen++;
    if (ownBytes > 0) this.#addUnderWay(ownBytes);
  }

  frameNotTaken(ownBytes = 0): void {
    if (ownBytes > 0) this.#addUnderWay(-ownBytes);
    this.release();
  }

  #addUnderWay(bytes: number): void {
    this.#bytesUnderWay += bytes;
    this.#reports.shares?.addUnderWay(this.#lane, this.#project.id, bytes);
  }

  /**
   * Sets the error of the request, unless it has one. After an error, no more lines are written.
   * `detail` is the detail of the answer, if the error has another cause than the store.
   */
  fail(code: ErrorCode, detail = ""): void {
    if (this.#failure === undefined) this.#failureDetail = detail;
    this.#failure ??= code;
    this.#firstFailure ??= code;
  }

  get failed(): boolean {
    return this.#failure !== undefined;
  }

  /** Waits until at most `framesMax` frames are open. Returns undefined if no wait is needed. */
  framesAtMost(framesMax: number): Promise<void> | undefined {
    this.#holdToShare();
    if (this.#framesOpen - 1 <= framesMax) return undefined;
    return new Promise((resolve) => {
      this.#room = { framesMax, resolve };
    });
  }

  frameSettled(
    outcome: FrameOutcome,
    code: ErrorCode | undefined,
    events: number,
    bytes: number,
    messageBytes: number,
  ): void {
    if (this.#bytesUnderWay > 0) this.#addUnderWay(-Math.min(bytes, this.#bytesUnderWay));
    if (outcome === "unknown") {
      // `timeout` overrides other errors, because only `timeout` means that events may be stored.
      this.fail(code ?? "timeout");
      this.#failure = "timeout";
      this.#failureDetail = "";
      if (code === "unavailable") this.#isUnfit = true;
      this.#unknown += events;
      this.#countShare(messageBytes);
    } else if (outcome === "refused") {
      this.fail(code ?? "unavailable");
    } else if (outcome === "duplicate") {
      this.#duplicates += events;
    } else {
      this.#stored += events;
      this.#storedBytes += bytes;
      this.#countShare(messageBytes);
    }
    this.release();
  }

  placed(): void {
    this.#isPlaced = true;
    this.release();
  }

  #countShare(bytes: number): void {
    this.#reports.shares?.stored(this.#lane, this.#project.id, bytes);
    this.#holdToShare();
  }

  #holdToShare(): void {
    if (this.#isPlaced) return;
    const full = this.#reports.shares?.refusalOf(this.#lane, this.#project.id);
    if (full !== undefined) this.fail(full.code);
  }

  /** Releases one frame. After the last one, sends the answer. */
  release(): void {
    this.#framesOpen--;
    if (this.#room !== undefined && this.#framesOpen - 1 <= this.#room.framesMax) {
      this.#room.resolve();
      this.#room = undefined;
    }
    if (this.#framesOpen > 0) return;
    this.#count();
    this.#reportEnd();
    const isReported = !this.#abandoned && (this.#failure === undefined || this.#isStoredInPart);
    this.#tally.quarantine?.settle(isReported);
    if (this.#abandoned) return;
    if (this.#failure !== undefined && !isReported) {
      this.#exchange.answerProblem({ code: this.#failure, detail: this.#detailOf(this.#failure) });
      return;
    }
    // Events of a rejected request are not counted here, because each retry would count again.
    this.#countReported();
    this.#tally.answer(this.#exchange, this.#firstFailure);
  }

  whenEnded(callback: (isStored: boolean) => void): void {
    this.#endCallbacks ??= [];
    this.#endCallbacks.push(callback);
  }

  #reportEnd(): void {
    if (this.#endCallbacks === undefined) return;
    for (const callback of this.#endCallbacks)
      callback(this.#failure === undefined && !this.#abandoned);
  }

  #countReported(): void {
    const { metrics, clientWarnings } = this.#reports;
    const tally = this.#tally;
    tally.countReported(this.#lane, metrics, this.#failure === undefined);
    if (tally.filtered > 0) this.#taken.countFiltered(tally.filtered);
    if (tally.dropped === 0) return;
    this.#taken.countDropped(tally.dropped);
    if (clientWarnings !== undefined) tally.warnNotStored(this.#exchange, clientWarnings);
  }

  get #isStoredInPart(): boolean {
    return this.#tally.answersInPart && this.#stored + this.#duplicates > 0;
  }

  #detailOf(failure: ErrorCode): string {
    if (this.#failureDetail !== "") return this.#failureDetail;
    const detail = details[failure] ?? "";
    if (failure !== "unavailable" && !this.#isUnfit) return detail;
    const unfit = this.#reports.publisher.refusalOf(
      this.#lane,
      this.#project.id,
      Number.POSITIVE_INFINITY,
    )?.detail;
    if (!this.#isUnfit) return unfit ?? detail;
    return `${unfit ?? "The store failed for some events"}; events in flight may be stored or not: send the request again`;
  }

  /** Ends the request after a bug. The caller must send the answer. */
  abandon(): void {
    this.#abandoned = true;
    this.release();
  }

  #count(): void {
    const { metrics } = this.#reports;
    const { meter } = this.#project;
    const { span } = this.#exchange;
    if (span !== undefined) span.counted(this.#stored + this.#duplicates, this.#tally.dropped);
    if (this.#stored > 0) {
      metrics.events(this.#lane, "none", this.#stored);
      meter.countStored(this.#stored, this.#storedBytes);
    }
    if (this.#duplicates > 0) metrics.events(this.#lane, "duplicate", this.#duplicates);
    if (this.#unknown > 0) {
      metrics.events(this.#lane, "timeout", this.#unknown);
      meter.countUnknown(this.#unknown);
    }
    if (this.#failure !== undefined || this.#abandoned) {
      const { dropped, filtered } = this.#tally;
      const leftOut = this.#isStoredInPart && !this.#abandoned ? dropped + filtered : 0;
      this.#taken.giveBack(this.#stored + this.#unknown + leftOut);
    }
  }
}
