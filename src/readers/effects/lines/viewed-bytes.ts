// Bytes, also as a view that reads four of them at a time.

import type { Buffer } from "node:buffer";

export interface ViewedBytes {
  readonly body: Buffer;
  readonly view: DataView;
}

export function viewed(body: Buffer): ViewedBytes {
  return { body, view: new DataView(body.buffer, body.byteOffset, body.length) };
}
