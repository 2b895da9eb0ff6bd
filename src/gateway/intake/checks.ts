// The checks that can reject a whole request. They run before any of its lines is written to a
// frame. `admit` consumes quota, so it must be called only once per request.

import type { Buffer } from "node:buffer";
import type { ClientWarningTaker } from "../../platform/base/client-warning.ts";
import { errorTable, type Problem } from "../../platform/base/errors.ts";
import { type Member, membersOf } from "../../platform/base/json-bytes.ts";
import { Header, Row, ScanStatus, TokenType } from "../../records/table.ts";
import type { BodyHint, Exchange } from "../http/port.ts";
import type { ProjectLookup } from "../projects/project.ts";
import type { Publisher } from "../publish/port.ts";
import type { ProjectShares } from "../streams/project-shares.ts";
import { scanProblem } from "./envelope.ts";
import type { Typos } from "./hints.ts";
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
  readonly #options: ChecksOptions;

  constructor(options: ChecksOptions) {
    this.#options = options;
  }

  ofStore(bytes: number): Problem | undefined {
    const code = this.#options.publisher.refusal(bytes);
    return code === undefined ? undefined : { code, detail: errorTable[code].title };
  }

  /** Rejects a large body of a project far over its quota, which saves the scan of the body. */
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

  open(work: Work, status: ScanStatus): Problem | undefined {
    if (status !== ScanStatus.Ok) return scanProblem(status, work);
    const envelope = work.protocol.readEnvelope(work, this.#options.projects);
    if ("code" in envelope) return this.#options.hints.withHint(envelope, work);
    work.open(envelope);
    const { id } = envelope.project;
    work.exchange.projectId = id;
    work.exchange.lane = envelope.lane;
    return this.#options.shares?.refusalOf(envelope.lane, id) ?? overCaps(work, this.#options.caps);
  }

  admitNow(work: Work): Problem | undefined {
    // A request without a hint has just arrived in one piece, so its deadline has not passed.
    return work.exchange.hint === undefined ? this.#ofStreamAndProject(work) : this.admit(work);
  }

  admit(work: Work): Problem | undefined {
    return this.ofDeadline(work.exchange) ?? this.#ofStreamAndProject(work);
  }

  /** If events were stored after the deadline, the client's retry would store them again. */
  ofDeadline({ deadlineMs }: Exchange): Problem | undefined {
    return this.#options.monotonicMs() >= deadlineMs ? tooLate : undefined;
  }

  #ofStreamAndProject(work: Work): Problem | undefined {
    const { lane, project, cost } = work;
    const unfit = this.#options.publisher.refusalOf(lane, project.id, work.body.length);
    if (unfit !== undefined) return unfit;
    cost.expansion = expansionOf(work, this.#options.caps);
    const taken = project.meter.take(cost);
    if (!("waitMs" in taken)) {
      work.taken = taken;
      return undefined;
    }
    const problem = refusedByMeter(taken, work, this.#options.caps);
    if (problem.code === "rate_limited") {
      this.#options.hints.noteLibrary(work);
      this.#options.metrics.events(lane, "rate_limited", cost.events);
    }
    return problem;
  }
}

const tooLate: Problem = {
  code: "timeout",
  detail: "The request timed out before any event was stored: send it again",
};

export class RefusalHints {
  readonly #typos: Typos;
  readonly #clientWarnings: ClientWarningTaker | undefined;

  constructor(typos: Typos, clientWarnings: ClientWarningTaker | undefined) {
    this.#typos = typos;
    this.#clientWarnings = clientWarnings;
  }

  noteLibrary({ exchange, body, table }: Work): void {
    if (this.#clientWarnings?.hasRoom) exchange.library = libraryOf(body, table);
  }

  withHint(problem: Problem, work: Work): Problem {
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

const names: ReadonlyMap<string, string> = new Map([
  ["web", "posthog-js"],
  ["js", "posthog-js-lite"],
]);

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
