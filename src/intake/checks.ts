// What a whole request can be refused for, in the order in which it is asked: whether the store
// takes anything now, what the scan and the envelope say, what the project may still store, its
// deadline and its quota. All are asked before any of it is placed; `admit`, which counts, once.

import type { Problem } from "../base/errors.ts";
import type { Exchange, ProjectLookup, ProjectShares, Publisher } from "../base/types.ts";
import { ScanStatus } from "../scan/table.ts";
import type { RefusalHints } from "./details/refusal-hints.ts";
import { scanProblem } from "./envelope.ts";
import { expandsTooFar, overCaps, overRate, type RequestCaps } from "./request-caps.ts";
import type { IntakeMetrics } from "./tally.ts";
import type { Work } from "./work.ts";

export interface ChecksOptions {
  readonly projects: ProjectLookup;
  readonly publisher: Publisher;
  readonly metrics: IntakeMetrics;
  readonly caps: RequestCaps;
  readonly shares: ProjectShares | undefined;
  readonly hints: RefusalHints;
  readonly monotonicMs: () => number;
}

export class Checks {
  readonly #projects: ProjectLookup;
  readonly #publisher: Publisher;
  readonly #metrics: IntakeMetrics;
  readonly #caps: RequestCaps;
  readonly #shares: ProjectShares | undefined;
  readonly #hints: RefusalHints;
  readonly #monotonicMs: () => number;

  constructor(options: ChecksOptions) {
    this.#projects = options.projects;
    this.#publisher = options.publisher;
    this.#metrics = options.metrics;
    this.#caps = options.caps;
    this.#shares = options.shares;
    this.#hints = options.hints;
    this.#monotonicMs = options.monotonicMs;
  }

  /** Before anything of the body is read. */
  ofStore(): Problem | undefined {
    const code = this.#publisher.refusal();
    return code === undefined ? undefined : { code, detail: "Events cannot be stored now" };
  }

  /**
   * Opens the request: reads in what a scan found whose it is, on which lane it goes and what it
   * costs.
   */
  open(work: Work, status: ScanStatus): Problem | undefined {
    if (status !== ScanStatus.Ok) return scanProblem(status, work);
    const envelope = work.protocol.readEnvelope(work, this.#projects);
    if ("code" in envelope) return this.#hints.withHint(envelope, work);
    work.open(envelope);
    const { id } = envelope.project;
    work.exchange.projectId = id;
    return this.#shares?.refusalOf(envelope.lane, id) ?? overCaps(work, this.#caps);
  }

  /** The same as `admit`, in the turn in which the body came. */
  admitNow(work: Work): Problem | undefined {
    // A body that came in one piece has just got its deadline.
    return work.exchange.hint === undefined ? this.#ofQuota(work) : this.admit(work);
  }

  /** The last of the checks: it counts against the project's quota. */
  admit(work: Work): Problem | undefined {
    return this.isLate(work.exchange) ? tooLate : this.#ofQuota(work);
  }

  /**
   * What is stored past its deadline is told "unknown" at the best, and its retry stores it again.
   */
  isLate({ deadlineMs }: Exchange): boolean {
    return this.#monotonicMs() >= deadlineMs;
  }

  /** Whether the stream is fit for the events, and the project within what it may send. */
  #ofQuota(work: Work): Problem | undefined {
    const { lane, project, cost } = work;
    const unfit = this.#publisher.refusalOf(lane, project.id);
    if (unfit !== undefined) return unfit;
    const tooFar = expandsTooFar(work, this.#caps);
    if (tooFar !== undefined) return tooFar;
    const waitMs = project.meter.admit(cost);
    if (waitMs === 0) return undefined;
    this.#hints.noteLibrary(work);
    this.#metrics.events(lane, "rate_limited", cost.events);
    return overRate(work, waitMs);
  }
}

const tooLate: Problem = {
  code: "timeout",
  detail: "The time for the request was over before any of it was stored: send it again",
};
