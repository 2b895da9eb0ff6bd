import { Buffer } from "node:buffer";
import {
  type BackgroundScanner,
  Extra,
  extraOf,
  Header,
  hasExtra,
  Row,
  type Scanner,
  ScanStatus,
} from "../../src/records/table.ts";

interface Outcome {
  readonly status: ScanStatus;
  /** The header and the rows of `scan` and of each `scanMore`. The extra of a row is after it. */
  readonly tables: readonly (readonly number[])[];
  readonly body: string;
}

export function written(table: Uint32Array): number[] {
  const words = [...table.subarray(0, Header.Words)];
  for (let index = 0; index < table[Header.RowCount]!; index += 1) {
    const row = Header.Words + index * Row.Words;
    words.push(...table.subarray(row, row + Row.Words));
    const extra = extraOf(table, row);
    if (hasExtra(table, row)) words.push(...table.subarray(extra, extra + Extra.Words));
  }
  return words;
}

export function outcomeOf(scanner: Scanner, bytes: Uint8Array): Outcome {
  const body = Buffer.from(bytes);
  const status = scanner.scan(body);
  const tables = [written(scanner.table)];
  while (status === ScanStatus.Ok && scanner.table[Header.RowCount]! > 0) {
    scanner.scanMore(body);
    tables.push(written(scanner.table));
  }
  return { status, tables, body: body.toString("latin1") };
}

export async function backgroundOutcomeOf(
  scanner: BackgroundScanner,
  bytes: Uint8Array,
): Promise<Outcome> {
  const body = Buffer.from(bytes);
  const status = await scanner.scanInBackground(body);
  const tables = [written(scanner.table)];
  while (status === ScanStatus.Ok && scanner.table[Header.RowCount]! > 0) {
    await scanner.scanMoreInBackground(body);
    tables.push(written(scanner.table));
  }
  return { status, tables, body: body.toString("latin1") };
}

export function parses(bytes: Uint8Array): boolean | undefined {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
