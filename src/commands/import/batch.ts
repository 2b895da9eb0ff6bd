import { Buffer } from "node:buffer";
import { Ascii } from "../../platform/base/ascii.ts";
import { recordOverheadBytesMax, sharedHistoryBytesMax } from "../../records/record.ts";

export interface LineNote {
  readonly line: number;
  readonly code: string;
  readonly detail: string;
  readonly isStored: boolean;
}

export const cutOffCode = "cut_off";

export interface Events {
  readonly items: readonly Buffer[];
  readonly lines: readonly number[];
}

export interface Batch extends Events {
  readonly links: number;
  readonly notes: readonly LineNote[];
  readonly lastLine: number;
  readonly fingerprint: string;
  /**
   * True if the file ends with this batch. If the file grows, the next run builds another batch.
   */
  readonly isLast?: boolean;
}

/** The key is at the beginning, because the gateway expects it there. */
export function bodyHead(key: string): Buffer {
  return Buffer.from(`{"api_key":${JSON.stringify(key)},"historical_migration":true,"batch":[`);
}

export const lineHead = Buffer.from('{"batch":[');
export const bodyTail = Buffer.from("]}");

/**
 * Returns the number of bytes of padding. The gateway recognizes a repeated request only if the
 * planned size of its records exceeds `sharedHistoryBytesMax`, so smaller requests need padding.
 */
export function paddingOf(head: Buffer, items: readonly Buffer[]): number {
  const records = bodyBytes(head, items) + items.length * recordOverheadBytesMax;
  return Math.max(0, sharedHistoryBytesMax + 1 - records);
}

export function bodyOf(head: Buffer, items: readonly Buffer[], padding = 0): Buffer {
  const body = Buffer.allocUnsafeSlow(bodyBytes(head, items) + padding);
  let length = head.copy(body);
  for (const [index, item] of items.entries()) {
    if (index > 0) body[length++] = Ascii.Comma;
    length += item.copy(body, length);
  }
  length += bodyTail.copy(body, length);
  return body.fill(Ascii.Space, length);
}

function bodyBytes(head: Buffer, items: readonly Buffer[]): number {
  const commas = Math.max(0, items.length - 1);
  return items.reduce((sum, { length }) => sum + length, head.length + commas + bodyTail.length);
}
