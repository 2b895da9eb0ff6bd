// The part of HTTP/1.1 that the bench's own clients need. Answers must have a Content-Length.

import { connect, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { LoadJob } from "./job.ts";

const headEnd = Buffer.from("\r\n\r\n");
const statusStart = "HTTP/1.1 ".length;

export interface Opened {
  readonly socket: Socket;
  readonly openEvent: string;
}

/** With TLS, accepts any certificate. */
export function openTo(url: string): Opened {
  const { protocol, hostname: host, port } = new URL(url);
  const options = { host, port: Number(port), noDelay: true };
  if (protocol === "http:") return { socket: connect(options), openEvent: "connect" };
  const socket = connectSecurely({ ...options, rejectUnauthorized: false });
  return { socket, openEvent: "secureConnect" };
}

export function headOf(job: LoadJob, bodyBytes: number | undefined): Buffer {
  const encoding =
    job.contentEncoding === undefined ? "" : `Content-Encoding: ${job.contentEncoding}\r\n`;
  const first = `POST ${job.path} HTTP/1.1\r\nHost: ${new URL(job.url).host}\r\n`;
  const framing =
    bodyBytes === undefined ? "Transfer-Encoding: chunked" : `Content-Length: ${bodyBytes}`;
  return Buffer.from(`${first}Content-Type: application/json\r\n${encoding}${framing}\r\n\r\n`);
}

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
