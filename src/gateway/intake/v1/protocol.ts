// The newer protocol (v1). The key is in a header. Each event has a uuid, the answer reports the
// outcome of each, and the client retries only those that were not stored.

import type { Problem } from "../../../platform/base/errors.ts";
import { Header, TokenType } from "../../../records/table.ts";
import type { V1Request } from "../../http/port.ts";
import type { ProjectLookup } from "../../projects/project.ts";
import type { Publisher } from "../../publish/port.ts";
import type { Envelope } from "../envelope.ts";
import { keyInBodyHint, type Typos } from "../hints.ts";
import type { LoopShare } from "../loop-share.ts";
import type { Tally } from "../tally.ts";
import type { Protocol, RequestFrames, SentAt, Work } from "../work.ts";
import { EventResults } from "./event-results.ts";
import { readV1Envelope, readV1Head } from "./request.ts";
import { ResultFrames } from "./result-frames.ts";
import { ResultTally } from "./result-tally.ts";
import type { UuidList } from "./uuid-list.ts";
import { readUuids, readUuidsInTurns } from "./uuids.ts";

/** The newer protocol (v1) for one request. */
export class V1Protocol implements Protocol {
  readonly rewritesItems = true;
  readonly needsTimestamp = true;
  readonly retriesWhole = false;
  additions = "";
  readonly #v1: V1Request;
  readonly #share: LoopShare;
  #requestId = "";
  #clientClockMs = Number.NaN;
  /** The results of the events; undefined until their uuids are read. */
  #results: EventResults | undefined = undefined;

  constructor(v1: V1Request, share: LoopShare) {
    this.#v1 = v1;
    this.#share = share;
  }

  readEnvelope(work: Work, projects: ProjectLookup): Envelope | Problem {
    const head = readV1Head(this.#v1);
    if ("code" in head) return head;
    this.#requestId = head.requestId;
    this.#clientClockMs = head.clientClockMs;
    this.additions = head.lib;
    return readV1Envelope(work, this.#v1.apiKey, projects);
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
    return { ms: this.#clientClockMs, unreadable: undefined };
  }

  createTally(): Tally {
    return new ResultTally(this.#v1, this.#knownResults);
  }

  createFrames(work: Work, publisher: Publisher): RequestFrames {
    return new ResultFrames(work, publisher, {
      requestId: this.#requestId,
      results: this.#knownResults,
    });
  }

  get #knownResults(): EventResults {
    if (this.#results === undefined)
      throw new Error("Take a request: the uuids of its events are not read");
    return this.#results;
  }
}
