// Distinct ids as strings: a recent id is returned as the same string object, which takes no memory
// and is not hashed again in a Map. Looked up by the addon's hash, and compared by bytes, because
// ids can be made to collide.

import { Part } from "../../../records/fields.ts";
import { Line } from "../../../records/lines.ts";
import type { RecordView } from "../../../records/record-view.ts";
import { isText } from "../rules/recent-texts.ts";

/** Two strings per set: some megabytes of recent ids. */
const sets = 32_768;
/** A longer id is created each time. */
const keptBytesMax = 64;

export class RecentIds {
  readonly #texts = new Array<string>(2 * sets).fill("");

  /** The distinct id of the record, which must be plain. */
  textOf(record: RecordView): string {
    const { body } = record;
    const start = record.startOf(Part.DistinctId) + 1;
    const end = record.endOf(Part.DistinctId) - 1;
    const length = end - start;
    if (length > keptBytesMax) return body.toString("latin1", start, end);
    const texts = this.#texts;
    const place = 2 * (record.hashWord(Line.IdLow) & (sets - 1));
    const first = texts[place]!;
    if (isText(first, body, start, length)) return first;
    const second = texts[place + 1]!;
    if (isText(second, body, start, length)) return second;
    const text = body.toString("latin1", start, end);
    texts[place + 1] = first;
    texts[place] = text;
    return text;
  }
}
