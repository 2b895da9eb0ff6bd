import { createConnection, type Socket } from "node:net";
import { expect } from "vitest";
import { residentBytes } from "./floods.ts";
import { readFrames } from "./gateway.ts";
import type { TestNatsServer } from "./nats-server.ts";
import { asWorkers, key, natsWithProject, serve, type TestWorkers, withClient } from "./workers.ts";

export { key } from "./workers.ts";

export interface Target {
  readonly nats: TestNatsServer;
  readonly gateway: TestWorkers;
  readonly said: { readonly err: string };
  readonly port: number;
  readonly pid: number;
  readonly residentBytes: number;
}

export async function startTarget(...settings: string[]): Promise<Target> {
  const nats = await natsWithProject();
  const process = serve(nats, ...settings);
  const gateway = await asWorkers(process);
  const { port } = gateway;
  await expect
    .poll(async () => (await raw(port, [request(event("first"))])).statuses, { timeout: 30_000 })
    .toEqual([200]);
  const pid = process.pid!;
  return { nats, gateway, said: process.said, port, pid, residentBytes: residentBytes(pid) };
}

export function event(distinctId: string, more: object = {}): string {
  return JSON.stringify({ api_key: key, event: "e", distinct_id: distinctId, ...more });
}

/** Returns a request. `Content-Length` is added unless `headers` determine the body's length. */
export function request(
  body: string | Uint8Array,
  headers: readonly string[] = [`Content-Length: ${Buffer.byteLength(body)}`],
  line = "POST /capture/ HTTP/1.1",
): Buffer {
  const head = [line, "Host: p", ...headers, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body)]);
}

export interface Heard {
  readonly text: string;
  readonly statuses: number[];
  readonly ended: boolean;
}

export interface RawOptions {
  /** Number of responses to wait for. Default: 1. The wait also ends when the connection ends. */
  readonly answers?: number;
  readonly fin?: boolean;
}

const waitMsMax = 20_000;

export function raw(
  port: number,
  pieces: readonly Uint8Array[],
  { answers = 1, fin = false }: RawOptions = {},
) {
  return new Promise<Heard>((resolve, reject) => {
    let text = "";
    let ended = false;
    const socket: Socket = createConnection({
      host: "127.0.0.1",
      port,
      noDelay: true,
      allowHalfOpen: true,
    });
    const timer = setTimeout(() => {
      socket.destroy();
      reject(
        new Error(
          `Wait for ${answers} answers: not within ${waitMsMax} ms: ${JSON.stringify(text)}`,
        ),
      );
    }, waitMsMax);
    socket.setEncoding("latin1");
    socket.on("connect", () => void write());
    socket.on("data", (chunk: string) => {
      text += chunk;
      if (statusesIn(text).length >= answers) socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("end", () => {
      ended = true;
      socket.destroy();
    });
    socket.on("close", () => {
      clearTimeout(timer);
      const statuses = statusesIn(text);
      resolve({ text, statuses, ended: ended || statuses.length < answers });
    });

    async function write(): Promise<void> {
      for (const piece of pieces) {
        if (socket.destroyed) return;
        await new Promise((written) => socket.write(piece, written));
        if (pieces.length > 1) await new Promise((turn) => setImmediate(turn));
      }
      if (fin) socket.end();
    }
  });
}

export function statusesIn(text: string): number[] {
  const found: number[] = [];
  for (let at = 0; ; ) {
    const end = text.indexOf("\r\n\r\n", at);
    if (end < 0) return found;
    const head = text.slice(at, end);
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (text.length < end + 4 + length) return found;
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1] ?? 0);
    if (status !== 100) found.push(status);
    at = end + 4 + length;
  }
}

export async function stored({ nats }: Target): Promise<string[]> {
  const frames = await withClient(nats, (connection) =>
    readFrames(connection, "penstock.live.*.shop"),
  );
  return frames.flatMap(({ events }) => events.map((one) => String(one["distinct_id"])));
}

/**
 * Checks that a client has not harmed the gateway: the process runs, a request is answered with a
 * 200, no bytes are in flight, and the memory is nearly as before.
 */
export async function expectUnharmed({
  gateway,
  said,
  port,
  pid,
  residentBytes: before,
}: Target): Promise<void> {
  expect(gateway.process.exitCode).toBeNull();
  expect(gateway.process.signalCode).toBeNull();
  expect((await raw(port, [request(event("last"))])).statuses).toEqual([200]);
  await expect
    .poll(
      async () => {
        const metrics = await gateway.metrics();
        return [metrics.get("penstock_inflight_bytes"), metrics.get("penstock_requests_inflight")];
      },
      { timeout: 30_000 },
    )
    .toEqual([0, 0]);
  await expect
    .poll(() => residentBytes(pid), { timeout: 30_000 })
    .toBeLessThan(before + 96 * 1_048_576);
  expect(said.err).not.toMatch(/"level":[56]0/);
}
