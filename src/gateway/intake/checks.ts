// The checks that can refuse a whole request, in their order: whether the store takes anything now,
// whether a project that shows in a large body's first bytes is far over its quota, what the scan
// and the envelope say, the project's share of its stream, the caps of one request, its deadline,
// whether its stream is fit, and the project's limits. All are made before any line of the request
// is placed. `admit` takes of these limits, so it is called once a request.

import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { Header, ScanStatus, TokenType } from "../../records/table.ts";
import type { BodyHint, Exchange } from "../http/port.ts";
import type { ProjectLookup } from "../projects/project.ts";
import type { Publisher } from "../publish/port.ts";
import type { ProjectShares } from "../streams/project-shares.ts";
import { scanProblem } from "./envelope.ts";
import type { Slips } from "./hints.ts";
import { libraryOf } from "./library.ts";
import {
  expansionOf,
  overCaps,
  overRate,
  type RequestCaps,
  refusedByMeter,
} from "./request-caps.ts";
import type { IntakeMetrics } from "./tally.ts";
import type { Work } from "./work.ts";
import { scannedAtOnceBytesMax } from "./work-size.ts";

interface ChecksOptions {
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

  /** Whether the store takes a body of `bytes` now: asked before anything of the body is read. */
  ofStore(bytes: number): Problem | undefined {
    const code = this.#publisher.refusal(bytes);
    return code === undefined ? undefined : { code, detail: "Events cannot be stored now" };
  }

  /**
   * The problem of a body that is too large to be scanned at once, where its first bytes show a
   * project that is far over its quota. So a flood of such bodies takes no scanner from others.
   */
  beforeScan(whose: BodyHint, exchange: Exchange, bytes: number): Problem | undefined {
    const { projectId, meter } = whose;
    if (bytes <= scannedAtOnceBytesMax || projectId === undefined || meter === undefined)
      return undefined;
    const unfit = this.ofStore(bytes);
    if (unfit !== undefined) return unfit;
    const refusal = meter.refuseUnread(bytes);
    if (refusal === undefined) return undefined;
    exchange.projectId = projectId;
    return overRate(refusal);
  }

  /**
   * Opens the request after its scan: finds in the table the project, the lane and the cost, or a
   * reason to refuse the request.
   */
  open(work: Work, status: ScanStatus): Problem | undefined {
    if (status !== ScanStatus.Ok) return scanProblem(status, work);
    const envelope = work.protocol.readEnvelope(work, this.#projects);
    if ("code" in envelope) return this.#hints.withHint(envelope, work);
    work.open(envelope);
    const { id } = envelope.project;
    work.exchange.projectId = id;
    work.exchange.lane = envelope.lane;
    return this.#shares?.refusalOf(envelope.lane, id) ?? overCaps(work, this.#caps);
  }

  /** The same as `admit`, for a body that is placed in the turn in which it came. */
  admitNow(work: Work): Problem | undefined {
    // Without a hint the body came in one piece, just now: its deadline cannot have passed.
    return work.exchange.hint === undefined ? this.#ofStreamAndProject(work) : this.admit(work);
  }

  /** The last of the checks. A request that passes counts against the project's quota. */
  admit(work: Work): Problem | undefined {
    return this.ofDeadline(work.exchange) ?? this.#ofStreamAndProject(work);
  }

  ofDeadline(exchange: Exchange): Problem | undefined {
    return this.isLate(exchange) ? tooLate : undefined;
  }

  /**
   * Whether the deadline has passed. Events stored after it could be answered with "unknown" at the
   * best, and the client's retry would store them again.
   */
  isLate({ deadlineMs }: Exchange): boolean {
    return this.#monotonicMs() >= deadlineMs;
  }

  /** Whether the stream is fit for the events, and then whether the project has room for them. */
  #ofStreamAndProject(work: Work): Problem | undefined {
    const { lane, project, cost } = work;
    const unfit = this.#publisher.refusalOf(lane, project.id, work.body.length);
    if (unfit !== undefined) return unfit;
    cost.expansion = expansionOf(work, this.#caps);
    const taken = project.meter.take(cost);
    if (!("waitMs" in taken)) {
      work.taken = taken;
      return undefined;
    }
    const problem = refusedByMeter(taken, work, this.#caps);
    if (problem.code === "rate_limited") {
      this.#hints.noteLibrary(work);
      this.#metrics.events(lane, "rate_limited", cost.events);
    }
    return problem;
  }
}

const tooLate: Problem = {
  code: "timeout",
  detail: "The time for the request was over before any of it was stored: send it again",
};

/** Finds what helps a client to find its mistake, once a request is refused. Decides nothing. */
export class RefusalHints {
  readonly #slips: Slips;
  readonly #clientWarnings: ClientWarningTaker | undefined;

  constructor(slips: Slips, clientWarnings: ClientWarningTaker | undefined) {
    this.#slips = slips;
    this.#clientWarnings = clientWarnings;
  }

  /** Tells the exchange which SDK made the body, unless no warning on the request would be kept. */
  noteLibrary({ exchange, body, table }: Work): void {
    if (this.#clientWarnings?.hasRoom) exchange.library = libraryOf(body, table);
  }

  /**
   * The problem of the envelope, with a hint on a name that looks like a slip for the missing key
   * or for the missing batch.
   */
  withHint(problem: Problem, work: Work): Problem {
    // For a body that is neither an object nor an array, the table says nothing but that.
    const root = work.table[Header.RootType];
    if (root !== TokenType.Object && root !== TokenType.Array) return problem;
    this.noteLibrary(work);
    const hint = work.protocol.hintOf(problem, work, this.#slips);
    return hint === "" ? problem : { ...problem, detail: `${problem.detail}; ${hint}` };
  }
}
