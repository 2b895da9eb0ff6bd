// As much of HTTP/1.1 as the paced client needs: it writes one kind of request, and reads answers that have a
// Content-Length.

import type { LoadJob } from "./job.ts";

const headEnd = Buffer.from("\r\n\r\n");
const statusStart = "HTTP/1.1 ".length;

export function requestOf(job: LoadJob, body: Buffer): Buffer {
  const encoding = job.contentEncoding === undefined ? "" : `Content-Encoding: ${job.contentEncoding}\r\n`;
  const head = `POST ${job.path} HTTP/1.1\r\nHost: ${new URL(job.url).host}\r\nContent-Type: application/json\r\n${encoding}`;
  return Buffer.concat([Buffer.from(`${head}Content-Length: ${body.length}\r\n\r\n`), body]);
}

/** Where the answer ends, or undefined when it is not whole yet. */
export function responseEnd(received: Buffer): number | undefined {
  const headLength = received.indexOf(headEnd);
  if (headLength < 0) return undefined;
  const length = /\r\ncontent-length: *(\d+)/i.exec(received.toString("latin1", 0, headLength))?.[1];
  const end = headLength + headEnd.length + Number(length ?? 0);
  return received.length >= end ? end : undefined;
}

export function statusOf(received: Buffer): number {
  return Number(received.toString("latin1", statusStart, statusStart + 3));
}
