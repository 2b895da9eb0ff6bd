// As much of HTTP/1.1 as the bench's own clients need: they write one kind of request, and read
// answers that have a Content-Length.

import type { LoadJob } from "./job.ts";

const headEnd = Buffer.from("\r\n\r\n");
const statusStart = "HTTP/1.1 ".length;

/** `bodyBytes` undefined: the body comes in chunks. */
export function headOf(job: LoadJob, bodyBytes: number | undefined): Buffer {
  const encoding =
    job.contentEncoding === undefined ? "" : `Content-Encoding: ${job.contentEncoding}\r\n`;
  const first = `POST ${job.path} HTTP/1.1\r\nHost: ${new URL(job.url).host}\r\n`;
  const framing =
    bodyBytes === undefined ? "Transfer-Encoding: chunked" : `Content-Length: ${bodyBytes}`;
  return Buffer.from(`${first}Content-Type: application/json\r\n${encoding}${framing}\r\n\r\n`);
}

/** Where the answer ends, or undefined when it is not whole yet. */
export function responseEnd(received: Buffer): number | undefined {
  const headLength = received.indexOf(headEnd);
  if (headLength < 0) return undefined;
  const length = /\r\ncontent-length: *(\d+)/i.exec(
    received.toString("latin1", 0, headLength),
  )?.[1];
  const end = headLength + headEnd.length + Number(length ?? 0);
  return received.length >= end ? end : undefined;
}

export function statusOf(received: Buffer): number {
  return Number(received.toString("latin1", statusStart, statusStart + 3));
}
