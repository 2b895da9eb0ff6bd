// A request that is going to be stored: what its items are judged by, where its lines go, and who
// waits for their frames.

import type { Buffer } from "node:buffer";
import type { Lane, MeteredProject, Publisher } from "../base/types.ts";
import type { RecordWriter } from "../events/record.ts";
import { type BackgroundScanner, Header } from "../scan/table.ts";
import { BodyFrames } from "./body-frames.ts";
import type { Job } from "./items.ts";
import type { LoopShare } from "./loop-share.ts";
import { type PendingOf, type PendingReports, PendingRequest } from "./pending-request.ts";
import { type RequestFrames, SharedFrames } from "./request-frames.ts";
import { readSentAt } from "./sent-at.ts";
import { Tally } from "./tally.ts";
import { EventResults } from "./v1/event-results.ts";
import type { V1Head } from "./v1/request.ts";
import { ResultFrames } from "./v1/result-frames.ts";
import { ResultTally } from "./v1/result-tally.ts";
import type { UuidList } from "./v1/uuid-list.ts";

export interface Scanned {
  readonly body: Buffer;
  /** Of a body that was repaired: see Job. */
  readonly malformed?: Uint32Array | undefined;
  /** So many stood before the body in what was sent. */
  readonly markBytes?: number;
  /** Holds the table of the body. */
  readonly scanner: BackgroundScanner;
}

/** A request whose body turned out to be one: its lines can be placed. */
export interface OpenRequest extends PendingOf, Scanned {
  /** Of the newer protocol. */
  readonly v1: V1Head | undefined;
}

/** A request whose lines are being placed. */
export interface Placing extends Job {
  readonly lane: Lane;
  readonly project: MeteredProject;
  readonly pending: PendingRequest;
}

export interface PlacingParts extends PendingReports {
  readonly publisher: Publisher;
  readonly records: RecordWriter;
  readonly share: LoopShare;
}

/** What is known of its events, or of its body, as a whole. */
export interface Known {
  /** Of its events, which is known of those of the newer protocol: each hears for itself. */
  readonly uuids?: UuidList | undefined;
  /** With a name for the body, its lines go to frames of their own. */
  readonly bodyId?: string | undefined;
}

/** One for all requests. */
export const nothingKnown: Known = {};

export function startPlacing(
  request: OpenRequest,
  parts: PlacingParts,
  { uuids, bodyId }: Known,
): Placing {
  const { exchange, body, malformed, scanner, lane, project, v1 } = request;
  const { publisher, records, share } = parts;
  const { receivedAtMs, clientAddress, deadlineMs, isEngage } = exchange;
  const sentAt =
    v1 === undefined
      ? readSentAt(body, scanner.table, exchange.sentAtMs)
      : { ms: v1.sentAtMs, isInvalid: false };
  const sentAtMs = sentAt.ms;
  const results = uuids === undefined ? undefined : new EventResults(uuids, share);
  const tally =
    results === undefined || exchange.v1 === undefined
      ? new Tally()
      : new ResultTally(exchange.v1, results);
  const pending = new PendingRequest(request, tally, parts);
  const place = { publisher, lane, project, pending, deadlineMs };
  let frames: RequestFrames;
  if (results !== undefined) {
    frames = new ResultFrames(place, {
      requestId: v1?.requestId ?? "",
      results,
      body,
      events: request.events,
      scanner,
    });
  } else {
    frames = bodyId === undefined ? new SharedFrames(place) : new BodyFrames(place, bodyId);
  }
  return {
    body,
    malformed,
    scanner,
    lane,
    project,
    needsTimestamp: lane === "historical" || v1 !== undefined,
    isEngage,
    receivedAtMs,
    skewMs: Number.isNaN(sentAtMs) ? 0 : sentAtMs - receivedAtMs,
    hasInvalidSentAt: sentAt.isInvalid,
    additions: v1?.lib,
    tally,
    pending,
    recordBytesMax: publisher.recordBytesMaxOf(lane, project.id),
    record: records.begin({ projectId: project.id, lane, receivedAtMs, sentAtMs, clientAddress }),
    frames,
  };
}

export function rowCount({ scanner }: Pick<Scanned, "scanner">): number {
  return scanner.table[Header.RowCount]!;
}

/** The next rows of a batch that is longer than the table; 0 for none. */
export async function nextRows({ scanner, body }: Scanned): Promise<number> {
  const { table } = scanner;
  if (table[Header.FirstItem]! + table[Header.RowCount]! >= table[Header.ItemCount]!) return 0;
  await scanner.scanMoreInBackground(body);
  return table[Header.RowCount]!;
}
