import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { onTestFinished } from "vitest";
import { PassThrough, type PassThroughConfig } from "../../../src/gateway/upstream/pass-through.ts";
import { startTestServer, type TestServer, type TestServerConfig } from "../../kit/http-server.ts";

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export interface Passing {
  readonly server: TestServer;
  readonly passThrough: PassThrough;
  readonly asked: Asked[];
  readonly ended: string[];
  answer: (asked: Asked, response: ServerResponse) => void;
  away(): Promise<void>;
  back(): Promise<void>;
}

/** The answer contains the path, and has no Cache-Control. */
export async function startPassing(
  config: Partial<PassThroughConfig> = {},
  serverConfig: TestServerConfig & { readonly path?: string } = {},
): Promise<Passing> {
  const asked: Asked[] = [];
  const ended: string[] = [];
  const sockets = new Set<Socket>();
  let passing: Passing | undefined;
  const listening = (port: number): ReturnType<typeof createServer> => {
    const upstream = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { method = "", url = "", headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks) };
      asked.push(one);
      passing?.answer(one, response);
    });
    upstream.on("connection", (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    });
    return upstream.listen(port, "127.0.0.1");
  };
  let upstream = listening(0);
  await once(upstream, "listening");
  const { port } = upstream.address() as AddressInfo;
  const passThrough = new PassThrough({
    config: {
      upstreamUrl: `http://127.0.0.1:${port}${serverConfig.path ?? ""}`,
      upstreamTimeoutMs: 5_000,
      upstreamRequestsMax: 8,
      upstreamKeptBytesMax: 1_048_576,
      upstreamKeptAge: 3_600_000,
      ...config,
    },
    monotonicMs: serverConfig.monotonicMs ?? (() => performance.now()),
    ended: (kind, outcome) => void ended.push(`${kind} ${outcome}`),
  });
  const server = await startTestServer({ ...serverConfig, passThrough });
  const away = async (): Promise<void> => {
    if (!upstream.listening) return;
    const closed = once(upstream, "close");
    upstream.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  onTestFinished(async () => {
    await away();
    passThrough.close();
  });
  passing = {
    server,
    passThrough,
    asked,
    ended,
    away,
    answer: ({ url }, response) => void response.end(url),
    async back() {
      upstream = listening(port);
      await once(upstream, "listening");
    },
  };
  return passing;
}

export function flagsBody(distinctId: string): string {
  return JSON.stringify({ token: "phc_x", distinct_id: distinctId, groups: {} });
}
