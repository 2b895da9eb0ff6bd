import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { onTestFinished } from "vitest";
import type { Result } from "../../../bench/load/result.ts";
import { listenedTo } from "../../kit/processes.ts";

interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly said: { out: string; err: string };
  readonly finished: Promise<Finished>;
}

const main = path.resolve(import.meta.dirname, "../../../bench/load/load.ts");
export const short = ["--duration", "1", "--warm-up", "0"];

export function startLoad(...args: string[]): Started {
  const child = listenedTo(
    spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] }),
  );
  const { said } = child;
  const finished = new Promise<Finished>((resolve) =>
    child.once("close", (code) => resolve({ code, ...said })),
  );
  return { child, said, finished };
}

export async function load(...args: string[]): Promise<{ code: number | null; result: Result }> {
  const { code, out, err } = await startLoad(...args, "--json").finished;
  if (out === "") throw new Error(`run the load test: no report: ${err}`);
  return { code, result: JSON.parse(out) as Result };
}

export async function standIn(
  answer: (
    body: Buffer,
    response: ServerResponse,
    request: IncomingMessage,
  ) => void | Promise<void>,
): Promise<string> {
  const server = createServer((request, response) => {
    if (request.method !== "POST") {
      response.writeHead(204).end();
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    const whole = once(request, "end").then(() => Buffer.concat(chunks));
    // If the test fails, the waiting client gets no answer, and the test reports its own error.
    whole.then((body) => answer(body, response, request)).catch((error) => response.destroy(error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function sayStored(response: ServerResponse, accepted = 1): void {
  response.writeHead(200, { "content-type": "application/json" });
  response.end(`{"status":"Ok","accepted":${accepted},"dropped":0}`);
}
