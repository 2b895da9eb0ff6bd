import { existsSync, readFileSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { Client } from "undici";
import { expect } from "vitest";

export interface Sent {
  /** The status of the response. It is 0 if the connection ended without a response. */
  readonly status: number;
  readonly code: string;
  readonly uploadMs: number;
  readonly answerMs: number;
}

export function send(
  port: number,
  body: Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): Promise<Sent> {
  return new Promise((resolve) => {
    const startedMs = performance.now();
    let wholeMs = startedMs;
    let received = "";
    const socket = createConnection({ host: "127.0.0.1", port }, () => {
      const lines = Object.entries({
        Host: "p",
        "Content-Length": String(body.length),
        ...headers,
      });
      socket.write(
        `POST /batch/ HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`,
      );
      writePieces(socket, body, () => {
        wholeMs = performance.now();
      });
    });
    socket.setEncoding("latin1").on("data", (text: string) => {
      received += text;
      if (/\r\n\r\n\{.*\}\n$/s.test(received)) socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      const status = Number(/^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? 0);
      const code = /"code":"(\w+)"/.exec(received)?.[1] ?? "";
      resolve({
        status,
        code,
        uploadMs: wholeMs - startedMs,
        answerMs: performance.now() - wholeMs,
      });
    });
  });
}

export async function untilKeyIsKnown(port: number, key: string): Promise<void> {
  const empty = Buffer.from(`{"api_key":"${key}","batch":[]}`);
  await expect.poll(async () => (await send(port, empty)).status, { timeout: 30_000 }).toBe(200);
}

const pieceBytes = 262_144;

function writePieces(socket: Socket, body: Uint8Array, whole: () => void): void {
  let at = 0;
  next();

  function next(): void {
    if (at >= body.length) {
      whole();
      return;
    }
    const piece = body.subarray(at, at + pieceBytes);
    at += piece.length;
    socket.write(piece, (error) => {
      if (!error) next();
    });
  }
}

interface SmallRequests {
  stop(): Promise<{
    readonly sent: number;
    readonly stored: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
  }>;
}

export function startSmallRequests(url: string, key: string): SmallRequests {
  const client = new Client(url);
  let stopped = false;
  const took: number[] = [];
  let stored = 0;
  const running = post();
  return { stop };

  async function post(): Promise<void> {
    while (!stopped) {
      const startedMs = performance.now();
      const body = JSON.stringify({
        api_key: key,
        event: "small",
        distinct_id: "d",
        properties: { n: took.length },
      });
      const answer = await client.request({ path: "/capture/", method: "POST", body });
      await answer.body.dump();
      if (answer.statusCode === 200) stored++;
      took.push(performance.now() - startedMs);
    }
  }

  async function stop() {
    stopped = true;
    await running;
    await client.close();
    const sorted = took.toSorted((left, right) => left - right);
    const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
    return { sent: took.length, stored, p50Ms: at(0.5), p99Ms: at(0.99) };
  }
}

let noteIsPrinted = false;

/** Returns the resident memory. Without /proc, prints a note and returns 0, so all limits pass. */
export function residentBytes(pid: number): number {
  return fieldOf(pid, "VmRSS");
}

export function peakBytes(pid: number): number {
  return fieldOf(pid, "VmHWM");
}

function fieldOf(pid: number, field: string): number {
  if (!existsSync("/proc/self/status")) {
    if (!noteIsPrinted)
      console.warn(
        "note: there is no /proc here (Linux is needed): the memory of processes is not checked",
      );
    noteIsPrinted = true;
    return 0;
  }
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1_024;
}
