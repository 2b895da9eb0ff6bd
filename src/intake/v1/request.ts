// What a request of the newer protocol (v1) says beside its events, and that each of these has a
// uuid of its own: whatever has the whole request refused is found here, before anything of it is
// placed.

import { Buffer } from "node:buffer";
import type { Problem } from "../../base/errors.ts";
import type { ProjectLookup, V1Request } from "../../base/types.ts";
import { timestampMs, timestampTokenMs } from "../../events/timestamp.ts";
import { UuidForm, unescapedUuid, uuidForm } from "../../events/uuid.ts";
import { FieldShift, Header, Row, TokenType } from "../../scan/table.ts";
import { type Envelope, laneOf, projectOf } from "../envelope.ts";
import type { LoopShare } from "../loop-share.ts";
import { type Known, nextRows, rowCount, type Scanned } from "../placing.ts";
import { UuidList } from "./uuid-list.ts";

/** What its headers say. */
export interface V1Head {
  /** In lower case; "" where there is none. */
  readonly requestId: string;
  /** What the client's clock showed; NaN where it does not say. */
  readonly sentAtMs: number;
  /** `"$lib":"…","$lib_version":"…"`, of the SDK that sent it; "" where that is not known. */
  readonly lib: string;
}

/** As PostHog has it: what is longer would be in each event. */
const sdkInfoCharactersMax = 200;
const uuidPattern = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A header that is absent says nothing; one that says something else than it should is refused. */
export function readV1Head({
  requestId,
  attempt,
  requestTimestamp,
  sdkInfo,
}: V1Request): V1Head | Problem {
  if (requestId !== "" && !uuidPattern.test(requestId))
    return invalidHeader("PostHog-Request-Id must be a UUID");
  if (attempt !== "" && !/^[1-9]\d{0,8}$/.test(attempt))
    return invalidHeader("PostHog-Attempt must be 1, 2 and so on");
  const sentAt = Buffer.from(requestTimestamp);
  const sentAtMs = sentAt.length === 0 ? Number.NaN : timestampMs(sentAt, 0, sentAt.length);
  if (sentAt.length > 0 && Number.isNaN(sentAtMs)) {
    return invalidHeader(
      "PostHog-Request-Timestamp must be a time as RFC 3339 has it, like 2026-01-31T23:59:59.999Z",
    );
  }
  return { requestId: requestId.toLowerCase(), sentAtMs, lib: libOf(sdkInfo) };
}

/** `name/version`, parted at the last slash. */
function libOf(sdkInfo: string): string {
  const slash = sdkInfo.lastIndexOf("/");
  const [name, version] = [sdkInfo.slice(0, slash).trim(), sdkInfo.slice(slash + 1).trim()];
  const isUsable = slash > 0 && sdkInfo.length <= sdkInfoCharactersMax && /^[ -~]+$/.test(sdkInfo);
  if (!isUsable || name === "" || version === "") return "";
  return `"$lib":${JSON.stringify(name)},"$lib_version":${JSON.stringify(version)}`;
}

/**
 * Whose it is and on which lane it goes, or what is wrong with its shape. The key is in a header:
 * one in the body means nothing.
 */
export function readV1Envelope(
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
  if (table[Header.ItemCount] === 0) return invalidPayload("batch holds no event");
  const [start, end] = [table[Header.CreatedAtStart]!, table[Header.CreatedAtEnd]!];
  const createdAtMs =
    table[Header.CreatedAtType] === TokenType.Absent
      ? Number.NaN
      : timestampTokenMs(body, start, end);
  if (Number.isNaN(createdAtMs)) {
    return invalidPayload(
      "created_at must be a time as RFC 3339 has it, like 2026-01-31T23:59:59.999Z",
    );
  }
  const lane = laneOf(table);
  return typeof lane === "string" ? { project, lane } : lane;
}

/** Rows read in one slice: a quarter of a millisecond. */
const readAtOnceMax = 2_048;

/** The uuids of a batch that the table holds whole, or what is wrong with one of them. */
export function readUuids(scanned: Scanned): Known | Problem {
  const reader = new UuidReader(scanned);
  reader.read(0, rowCount(scanned));
  return reader.problem ?? { uuids: reader.uuids };
}

/** The same of any batch. Afterwards the table holds its first rows again. */
export async function readUuidsInTurns(
  scanned: Scanned,
  share: LoopShare,
): Promise<Known | Problem> {
  const reader = new UuidReader(scanned);
  for (let rows = rowCount(scanned); rows > 0; rows = await nextRows(scanned)) {
    for (let start = 0; start < rows; start += readAtOnceMax) {
      await share.slice(() => reader.read(start, Math.min(rows, start + readAtOnceMax)));
      if (reader.problem !== undefined) return reader.problem;
    }
  }
  const { scanner, body } = scanned;
  if (scanner.table[Header.FirstItem] !== 0) await scanner.scanInBackground(body);
  return { uuids: reader.uuids };
}

/** Reads the uuids of a batch, row by row, as far as the first that is not as it must be. */
class UuidReader {
  readonly uuids: UuidList;
  problem: Problem | undefined = undefined;
  readonly #body: Buffer;
  readonly #table: Uint32Array;

  constructor({ body, scanner }: Scanned) {
    this.uuids = new UuidList(scanner.table[Header.ItemCount]!);
    this.#body = body;
    this.#table = scanner.table;
  }

  /** Of the rows from `start` up to `end`. */
  read(start: number, end: number): void {
    for (let row = start; row < end && this.problem === undefined; row++) {
      this.#readRow(Header.Words + row * Row.Words);
    }
  }

  #readRow(row: number): void {
    const table = this.#table;
    const index = this.uuids.length;
    const type = (table[row + Row.FieldTypes]! >>> FieldShift.Uuid) & 0xf;
    const [start, end] = [table[row + Row.UuidStart]!, table[row + Row.UuidEnd]!];
    const body = this.#body;
    const isPlain =
      type === TokenType.PlainString && uuidForm(body, start + 1, end - 1) !== UuidForm.None;
    const unescaped =
      type === TokenType.EscapedString ? unescapedUuid(body, start, end) : undefined;
    if (!isPlain && unescaped === undefined) {
      const what =
        type === TokenType.Absent || type === TokenType.Null ? "has none" : "has one that is none";
      this.problem = invalidPayload(`Each event must have a uuid, and batch[${index}] ${what}`);
      return;
    }
    const equal =
      unescaped === undefined ? this.uuids.add(body, start + 1) : this.uuids.add(unescaped, 0);
    if (equal >= 0)
      this.problem = invalidPayload(`batch[${index}] has the same uuid as batch[${equal}]`);
  }
}

const missingKey: Problem = {
  code: "missing_api_key",
  detail:
    "The key of the project must be in the header Authorization, as Bearer <key>, or in PostHog-Api-Token",
};

function invalidHeader(detail: string): Problem {
  return { code: "invalid_header", detail };
}

function invalidPayload(detail: string): Problem {
  return { code: "invalid_payload", detail };
}
