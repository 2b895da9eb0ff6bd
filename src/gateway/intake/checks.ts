// The checks that can refuse a whole request, before any of its lines is placed. They run in this
// order:
// - whether the store accepts events now
// - whether the project in a large body's first bytes is far over its quota
// - the scan and the envelope
// - the project's share of its stream
// - the caps of one request
// - the deadline of the request
// - whether the project's stream is fit
// - the project's quota
// `admit` consumes quota, so it is called once per request.

import type { Buffer } from "node:buffer";
import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { Header, Row, ScanStatus, TokenType } from "../../records/table.ts";
import type { BodyHint, Exchange } from "../http/port.ts";
import type { ProjectLookup } from "../projects/project.ts";
import type { Publisher } from "../publish/port.ts";
import type { ProjectShares } from "../streams/project-shares.ts";
import { scanProblem } from "./envelope.ts";
import type { Typos } from "./hints.ts";
import { type Member, membersOf } from "./json-bytes.ts";
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

  /** Returns why the store refuses a body of `bytes` now. Called before the body is read. */
  ofStore(bytes: number): Problem | undefined {
    const code = this.#publisher.refusal(bytes);
    return code === undefined ? undefined : { code, detail: "Events cannot be stored now" };
  }

  /**
   * Returns a problem if the first bytes of a large body show a project that is far over its quota.
   * So a flood of such bodies takes no scanners from other projects.
   */
  beforeScan(hint: BodyHint, exchange: Exchange, bytes: number): Problem | undefined {
    const { projectId, meter } = hint;
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
   * Opens the request after its scan: reads the project, the lane and the cost from the table.
   * Returns the problem if the request is refused.
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

  /** Like `admit`, for a body that is placed in the event loop iteration in which it arrived. */
  admitNow(work: Work): Problem | undefined {
    // Without a hint the body arrived in one piece, just now: its deadline cannot have passed.
    return work.exchange.hint === undefined ? this.#ofStreamAndProject(work) : this.admit(work);
  }

  /** Runs the last checks. If the request passes, counts it against the project's quota. */
  admit(work: Work): Problem | undefined {
    return this.ofDeadline(work.exchange) ?? this.#ofStreamAndProject(work);
  }

  ofDeadline(exchange: Exchange): Problem | undefined {
    return this.isLate(exchange) ? tooLate : undefined;
  }

  /**
   * Returns whether the deadline has passed. Events stored after it could at best be answered with
   * "unknown", and the client's retry would store them again.
   */
  isLate({ deadlineMs }: Exchange): boolean {
    return this.#monotonicMs() >= deadlineMs;
  }

  /**
   * Checks whether the stream is fit for the events, and then whether the project has quota left.
   */
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
  detail: "The request timed out before any of it was stored: send it again",
};

/** Finds hints on the client's mistake after a request is refused. */
export class RefusalHints {
  readonly #typos: Typos;
  readonly #clientWarnings: ClientWarningTaker | undefined;

  constructor(typos: Typos, clientWarnings: ClientWarningTaker | undefined) {
    this.#typos = typos;
    this.#clientWarnings = clientWarnings;
  }

  /** Sets the exchange's SDK name, unless a warning on the request would be discarded. */
  noteLibrary({ exchange, body, table }: Work): void {
    if (this.#clientWarnings?.hasRoom) exchange.library = libraryOf(body, table);
  }

  /**
   * Returns the problem of the envelope, with a hint on a name that looks like a typo of the
   * missing key or batch.
   */
  withHint(problem: Problem, work: Work): Problem {
    // If the body is neither an object nor an array, the table has no other information.
    const root = work.table[Header.RootType];
    if (root !== TokenType.Object && root !== TokenType.Array) return problem;
    this.noteLibrary(work);
    const hint = work.protocol.hintOf(problem, work, this.#typos);
    return hint === "" ? problem : { ...problem, detail: `${problem.detail}; ${hint}` };
  }
}

const valuePattern = /^"([\w.+-]{1,32})"/;
const valueBytesRead = 34;
const keyPattern = /ph[a-z]_/i;

/** The names of SDKs that use another name in their events. */
const names: ReadonlyMap<string, string> = new Map([
  ["web", "posthog-js"],
  ["js", "posthog-js-lite"],
]);

/**
 * Returns the SDK's name and version, for example `posthog-js 1.449.0`; "" if the event has none.
 * The table must be the body's.
 */
function libraryOf(body: Buffer, table: Uint32Array): string {
  if (table[Header.RowCount] === 0) return "";
  const row = Header.Words;
  const start = table[row + Row.PropertiesStart]!;
  const end = table[row + Row.PropertiesEnd]!;
  const ofProperties = named(body, membersOf({ body, start, end }), ["$lib", "$lib_version"]);
  if (ofProperties !== "") return ofProperties;
  const item = { body, start: table[row + Row.ItemStart]!, end: table[row + Row.ItemEnd]! };
  const ofItem = membersOf({ ...item, skipFrom: start, skipTo: end });
  return named(body, ofItem, ["library", "library_version"]);
}

function named(
  body: Buffer,
  members: readonly Member[],
  [name, version]: readonly [string, string],
): string {
  const library = textOf(body, members, name);
  if (library === "") return "";
  return `${names.get(library) ?? library} ${textOf(body, members, version)}`.trimEnd();
}

function textOf(body: Buffer, members: readonly Member[], wanted: string): string {
  const member = members.find(({ name }) => name === wanted);
  if (member === undefined) return "";
  const text = body.toString("latin1", member.valueAt, member.valueAt + valueBytesRead);
  const found = valuePattern.exec(text)?.[1] ?? "";
  return keyPattern.test(found) ? "" : found;
}
