// Reads the uuids of a request of the newer protocol (v1). Each event must have a uuid that no
// other event of the request has; otherwise the whole request is refused, before any event is
// placed in a frame. The nil and the max UUID may be repeated: clients send them for events without
// a uuid, and the events are stored under new ones.

import type { Buffer } from "node:buffer";
import type { Problem } from "../../../platform/base/errors.ts";
import { FieldShift, Header, Row, TokenType } from "../../../records/table.ts";
import { UuidForm, unescapedUuid, uuidForm } from "../../../records/uuid.ts";
import type { LoopShare } from "../loop-share.ts";
import type { Work } from "../work.ts";
import { invalidPayload } from "./request.ts";
import { UuidList } from "./uuid-list.ts";

/**
 * Maximum number of slots examined per slice, which takes a quarter of a millisecond. Each row
 * examines at least one slot, so this also limits the rows of a slice.
 */
const probesAtOnceMax = 512;

/** Returns the uuids of a batch whose rows are all in the table, or the problem of one of them. */
export function readUuids(work: Work): UuidList | Problem {
  const reader = new UuidReader(work);
  reader.read(0, work.rowCount, Number.POSITIVE_INFINITY);
  return reader.problem ?? reader.uuids;
}

/**
 * Like `readUuids`, for a batch of any length, in slices. `refusal` is called before each slice. If
 * it returns a problem, the reading ends. After success, the table holds the first rows of the
 * batch again.
 */
export async function readUuidsInTurns(
  work: Work,
  share: LoopShare,
  refusal: () => Problem | undefined,
): Promise<UuidList | Problem> {
  const reader = new UuidReader(work);
  for (let rows = work.rowCount; rows > 0; rows = await work.nextRows()) {
    let next = 0;
    const slice = (): void => {
      reader.problem = refusal();
      if (reader.problem === undefined) next = reader.read(next, rows, probesAtOnceMax);
    };
    while (next < rows) {
      await share.slice(slice);
      if (reader.problem !== undefined) return reader.problem;
    }
  }
  if (work.table[Header.FirstItem] !== 0) await work.scanner.scanInBackground(work.body);
  return reader.uuids;
}

/**
 * Reads the uuids of a batch row by row, and stops at the first that is missing, malformed, or
 * equal to an earlier one.
 */
class UuidReader {
  readonly uuids: UuidList;
  problem: Problem | undefined = undefined;
  readonly #body: Buffer;
  readonly #table: Uint32Array;

  constructor({ body, table }: Work) {
    this.uuids = new UuidList(table[Header.ItemCount]!);
    this.#body = body;
    this.#table = table;
  }

  /**
   * Reads the rows from `start` up to `end`. Stops earlier after `probesMax` probes. Returns the
   * row after the last one read.
   */
  read(start: number, end: number, probesMax: number): number {
    const { uuids } = this;
    const probesEnd = uuids.probes + probesMax;
    let row = start;
    while (row < end && this.problem === undefined && uuids.probes < probesEnd) {
      this.#readRow(Header.Words + row * Row.Words);
      row++;
    }
    return row;
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
        type === TokenType.Absent || type === TokenType.Null
          ? "has none"
          : "has one that is not a UUID";
      this.problem = invalidPayload(`Each event must have a uuid, and batch[${index}] ${what}`);
      return;
    }
    const equal =
      unescaped === undefined ? this.uuids.add(body, start + 1) : this.uuids.add(unescaped, 0);
    if (equal >= 0)
      this.problem = invalidPayload(`batch[${index}] has the same uuid as batch[${equal}]`);
  }
}
