// The reference scanner writes the table of src/records/table.ts in plain JavaScript. Tests compare
// the addon with it. It must not share code with the addon, except the layout of the table.

import { Ascii } from "../../../src/platform/base/ascii.ts";
import {
  type BackgroundScanner,
  Extra,
  extraOf,
  Header,
  NotNormal,
  type Repair,
  Row,
  rowsMax,
  ScanLimit,
  ScanStatus,
  TokenType,
  tableWords,
} from "../../../src/records/table.ts";
import { changeItemsByScan } from "./item-changes.ts";
import { keyOfArray, keyOfEnvelope, keyOfEvent, membersByName } from "./keys.ts";
import { findMembersInTree } from "./members.ts";
import { normaliseText } from "./normalise.ts";
import { findUtf8Fault, type JsonChild, type JsonNode, type JsonTree, parseTree } from "./parse.ts";
import { measureNumbers, measureRepair, repairBody } from "./repair.ts";
import { fillItem } from "./rows.ts";
import { planRowsInSlots } from "./tasks.ts";

interface Items {
  readonly items: readonly JsonChild[];
  readonly depth: number;
}

function put(header: Uint32Array, word: number, value: JsonNode | undefined): void {
  if (value !== undefined) header.set([value.type, value.start, value.end], word);
}

function fillHeader(header: Uint32Array, body: Buffer, root: JsonNode): Items {
  header[Header.RootType] = root.type;
  if (root.type === TokenType.Array) {
    const { key, otherItem } = keyOfArray(body, root);
    put(header, Header.KeyType, key);
    header[Header.OtherKeyItem] = otherItem;
    return { items: root.children, depth: 1 };
  }
  if (root.type !== TokenType.Object) return { items: [], depth: 0 };
  const members = membersByName(root);
  const [sentAt, otherSentAt] = [members.get("sent_at"), members.get("sentAt")];
  const says =
    sentAt !== undefined && sentAt.type !== TokenType.Null && sentAt.type !== TokenType.EmptyString;
  put(header, Header.SentAtType, says ? sentAt : (otherSentAt ?? sentAt));
  put(header, Header.CreatedAtType, members.get("created_at"));
  header[Header.HistoricalType] = members.get("historical_migration")?.type ?? TokenType.Absent;
  const batch = members.get("batch");
  header[Header.BatchType] = batch?.type ?? TokenType.Absent;
  put(header, Header.KeyType, batch === undefined ? keyOfEvent(root) : keyOfEnvelope(members));
  if (batch === undefined) return { items: [{ key: "", node: root }], depth: 0 };
  return { items: batch.type === TokenType.Array ? batch.children : [], depth: 2 };
}

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
    return true;
  } catch {
    return false;
  }
}

function replaceLineBreaks(body: Buffer): void {
  for (let at = 0; at < body.length; at += 1) {
    if (body[at] === Ascii.LineFeed || body[at] === Ascii.CarriageReturn) body[at] = Ascii.Space;
  }
}

/**
 * Creates a reference scanner. It has no background thread: a background scan runs immediately on
 * the event loop, and returns a settled promise.
 * @param rows Maximum number of rows in the table. If a body has more events, `scanMore` returns
 * them.
 */
export function createReferenceScanner(rows: number = rowsMax): BackgroundScanner {
  return new ReferenceScanner(rows);
}

class ReferenceScanner implements BackgroundScanner {
  readonly table: Uint32Array;
  readonly planRows = planRowsInSlots;
  readonly #rows: number;
  readonly #header: Uint32Array;
  #items: readonly JsonChild[] = [];
  #tree: JsonTree | undefined = undefined;
  #depth = 0;
  #itemsEnd = 0;
  #delivered = 0;
  #lastLength: number | undefined = undefined;

  constructor(rows: number) {
    this.#rows = rows;
    this.table = new Uint32Array(tableWords(rows));
    this.#header = this.table.subarray(0, Header.Words);
  }

  scan(body: Buffer): ScanStatus {
    const header = this.#header;
    header.fill(0);
    this.#items = [];
    this.#itemsEnd = 0;
    this.#delivered = 0;
    this.#lastLength = body.length;
    const utf8Fault = findUtf8Fault(body);
    if (utf8Fault !== undefined) {
      header[Header.ErrorOffset] = utf8Fault;
      measureRepair(header, body);
      return ScanStatus.InvalidUtf8;
    }
    const tree = parseTree(body);
    if ((typeof tree === "object") !== isJson(body)) {
      throw new Error(
        "Scanning a body: the reference scanner and JSON.parse disagree on whether it is JSON",
      );
    }
    if (typeof tree === "number") {
      if (/^[ \t\n\r]*$/.test(body.toString("latin1"))) return ScanStatus.Empty;
      header[Header.ErrorOffset] = tree;
      measureNumbers(header, body, tree);
      return ScanStatus.InvalidJson;
    }
    const { items, depth } = fillHeader(header, body, tree.root);
    this.#tree = tree;
    this.#items = items;
    this.#depth = depth;
    this.#itemsEnd = items.length;
    header[Header.ItemCount] = items.length;
    this.#fillRows();
    replaceLineBreaks(body);
    return ScanStatus.Ok;
  }

  findMembers(...given: Parameters<BackgroundScanner["findMembers"]>): number {
    return findMembersInTree(this.table, ...given);
  }

  changeItems(...given: Parameters<BackgroundScanner["changeItems"]>): number {
    return changeItemsByScan(new ReferenceScanner(1), ...given);
  }

  scanPart(body: Buffer, start: number, end: number): ScanStatus {
    return this.scan(body.subarray(start, end));
  }

  scanAtOnce(body: Buffer): ScanStatus {
    const status = this.scan(body);
    if (status === ScanStatus.Ok || body.length <= ScanLimit.ExplainedAtOnceBytes) return status;
    this.#header.fill(0);
    return ScanStatus.Unexplained;
  }

  scanMore(body: Buffer): void {
    if (body.length !== this.#lastLength)
      throw new Error("scanMore takes the body of the last scan: another length");
    this.#fillRows();
  }

  async scanInBackground(body: Buffer): Promise<ScanStatus> {
    return this.scan(body);
  }

  async scanMoreInBackground(body: Buffer): Promise<void> {
    this.scanMore(body);
  }

  finish(): void {
    this.#items = [];
    this.#tree = undefined;
    this.#itemsEnd = this.#delivered;
  }

  release(): void {
    this.finish();
  }

  normalise(body: Buffer, start: number, end: number, target: Buffer, at: number): number {
    const text = normaliseText(body.toString("utf8", start, end));
    return text === undefined ? NotNormal.NotJson : target.write(text, at);
  }

  repair(body: Buffer, until: number, repair: Repair): void {
    repairBody(body, until, repair);
  }

  #fillRows(): void {
    const { table } = this;
    this.#header[Header.FirstItem] = this.#delivered;
    const count = Math.min(this.#rows, this.#itemsEnd - this.#delivered);
    this.#header[Header.RowCount] = count;
    for (let index = 0; index < count; index += 1) {
      const start = Header.Words + index * Row.Words;
      const extra = extraOf(table, start);
      const words = {
        row: table.subarray(start, start + Row.Words),
        extra: table.subarray(extra, extra + Extra.Words),
      };
      const { node } = this.#items[this.#delivered + index]!;
      fillItem(words, node, this.#tree!, this.#depth);
    }
    this.#delivered += count;
    // The tree of a large body is released after its last row was returned.
    if (this.#delivered === this.#itemsEnd) {
      this.#items = [];
      this.#tree = undefined;
    }
  }
}
