// The newer protocol (v1). The key is in a header. The answer contains the outcome of each event by
// its uuid, and the client retries only events that were not stored.

import { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import { isUuid } from "../../../platform/base/forms.ts";
import { Header, TokenType } from "../../../records/table.ts";
import { timestampMs, timestampTokenMs } from "../../../records/timestamp.ts";
import type { V1Request } from "../../http/port.ts";
import type { ProjectLookup } from "../../projects/project.ts";
import type { Publisher } from "../../publish/port.ts";
import { type Envelope, invalidPayload, laneOf, projectOf } from "../envelope.ts";
import { keyInBodyHint, type Typos } from "../hints.ts";
import type { LoopShare } from "../loop-share.ts";
import type { Tally } from "../tally.ts";
import type { Protocol, RequestFrames, SentAt, Work } from "../work.ts";
import { EventResults, ResultTally } from "./event-results.ts";
import { ResultFrames } from "./result-frames.ts";
import { readUuids, readUuidsInTurns, type UuidList } from "./uuids.ts";

export class V1Protocol implements Protocol {
  readonly rewritesItems = true;
  readonly needsTimestamp = true;
  readonly retriesWhole = false;
  readonly #v1: V1Request;
  readonly #share: LoopShare;
  #head: V1Head = { requestId: "", clientClockMs: Number.NaN, lib: "" };
  #results!: EventResults;

  constructor(v1: V1Request, share: LoopShare) {
    this.#v1 = v1;
    this.#share = share;
  }

  readEnvelope(work: Work, projects: ProjectLookup): Envelope | Problem {
    const head = readV1Head(this.#v1);
    if ("code" in head) return head;
    this.#head = head;
    return readV1Envelope(work, this.#v1.apiKey, projects);
  }

  get additions(): string {
    return this.#head.lib;
  }

  hintOf(problem: Problem, { body, table }: Work, typos: Typos): string {
    if (problem.code === "missing_api_key") return keyInBodyHint(body, table, typos);
    const lacksBatch =
      problem.code === "invalid_payload" && table[Header.BatchType] === TokenType.Absent;
    return lacksBatch ? typos.hint({ body, start: 0, end: body.length }, "batch") : "";
  }

  readEvents(work: Work): Problem | undefined {
    return this.#setUuids(readUuids(work));
  }

  async readEventsInTurns(
    work: Work,
    refusal: () => Problem | undefined,
  ): Promise<Problem | undefined> {
    return this.#setUuids(await readUuidsInTurns(work, this.#share, refusal));
  }

  #setUuids(uuids: UuidList | Problem): Problem | undefined {
    if ("code" in uuids) return uuids;
    this.#results = new EventResults(uuids, this.#share);
    return undefined;
  }

  readSentAt(): SentAt {
    return { ms: this.#head.clientClockMs, unreadable: undefined };
  }

  createTally(): Tally {
    return new ResultTally(this.#v1, this.#results);
  }

  createFrames(work: Work, publisher: Publisher): RequestFrames {
    return new ResultFrames(work, publisher, {
      requestId: this.#head.requestId,
      results: this.#results,
    });
  }
}

interface V1Head {
  readonly requestId: string;
  readonly clientClockMs: number;
  /** The SDK's name and version as `"$lib":"…","$lib_version":"…"`, or "" if it is unknown. */
  readonly lib: string;
}

/** The same limit as in PostHog. It exists because the header is stored with each event. */
const sdkInfoCharactersMax = 200;

/** Rejects a request with a malformed header. A malformed SDK header is ignored. */
export function readV1Head({
  requestId,
  attempt,
  requestTimestamp,
  sdkInfo,
}: V1Request): V1Head | Problem {
  if (requestId !== "" && !isUuid(requestId))
    return invalidHeader("PostHog-Request-Id must be a UUID");
  if (attempt !== "" && !/^[1-9]\d{0,8}$/.test(attempt))
    return invalidHeader("PostHog-Attempt must be an integer of 1 or more");
  const sentAt = Buffer.from(requestTimestamp);
  const clientClockMs = sentAt.length === 0 ? Number.NaN : timestampMs(sentAt, 0, sentAt.length);
  if (sentAt.length > 0 && Number.isNaN(clientClockMs)) {
    return invalidHeader(
      "PostHog-Request-Timestamp must be an RFC 3339 time such as 2026-01-31T23:59:59.999Z",
    );
  }
  return { requestId: requestId.toLowerCase(), clientClockMs, lib: libOf(sdkInfo) };
}

function libOf(sdkInfo: string): string {
  const slash = sdkInfo.lastIndexOf("/");
  const [name, version] = [sdkInfo.slice(0, slash).trim(), sdkInfo.slice(slash + 1).trim()];
  const isUsable = slash > 0 && sdkInfo.length <= sdkInfoCharactersMax && /^[ -~]+$/.test(sdkInfo);
  if (!isUsable || name === "" || version === "") return "";
  return `"$lib":${JSON.stringify(name)},"$lib_version":${JSON.stringify(version)}`;
}

function readV1Envelope(
  scanned: { readonly body: Buffer; readonly table: Uint32Array },
  apiKey: string,
  projects: ProjectLookup,
): Envelope | Problem {
  const { body, table } = scanned;
  const project = apiKey === "" ? missingKey : projectOf(apiKey, projects);
  if ("code" in project) return project;
  if (table[Header.RootType] !== TokenType.Object)
    return invalidPayload("The body must be a JSON object with created_at and batch");
  if (table[Header.BatchType] !== TokenType.Array)
    return invalidPayload("batch must be an array of events");
  if (table[Header.ItemCount] === 0) return invalidPayload("batch contains no event");
  const [start, end] = [table[Header.CreatedAtStart]!, table[Header.CreatedAtEnd]!];
  const createdAtMs =
    table[Header.CreatedAtType] === TokenType.Absent
      ? Number.NaN
      : timestampTokenMs(body, start, end);
  if (Number.isNaN(createdAtMs)) {
    return invalidPayload("created_at must be an RFC 3339 time such as 2026-01-31T23:59:59.999Z");
  }
  const lane = laneOf(table);
  return typeof lane === "string" ? { project, lane } : lane;
}

const missingKey: Problem = {
  code: "missing_api_key",
  detail:
    "The key of the project must be in the header Authorization, as Bearer <key>, or in PostHog-Api-Token",
};

function invalidHeader(detail: string): Problem {
  return { code: "invalid_header", detail };
}
