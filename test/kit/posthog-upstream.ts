// A real HTTP server that responds like PostHog's capture. A test can make it fail.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";

export interface UpstreamEvent {
  readonly uuid: string;
  readonly event: string;
  readonly distinct_id: string;
  readonly timestamp: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly $set?: unknown;
  readonly $set_once?: unknown;
}

interface UpstreamBatch {
  readonly api_key: string;
  readonly historical_migration?: boolean;
  readonly batch: readonly UpstreamEvent[];
}

export interface UpstreamRequest {
  readonly body: UpstreamBatch;
  readonly bytes: number;
  readonly headers: IncomingMessage["headers"];
}

export interface UpstreamAnswer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The outcome of a request: undefined accepts the events, and `cut` closes the connection. */
type Play = (
  request: UpstreamRequest,
) => UpstreamAnswer | "cut" | undefined | Promise<UpstreamAnswer | "cut" | undefined>;

export interface TestUpstream {
  readonly url: string;
  readonly taken: UpstreamBatch[];
  readonly requests: UpstreamRequest[];
  readonly most: { ofOne: number; ofAll: number };
  play: Play;
  readonly unknownKeys: Set<string>;
  events(key?: string): UpstreamEvent[];
  /** Closes the server, so that connections are refused. `start` opens the same port again. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export async function startUpstream(): Promise<TestUpstream> {
  const underWay = new Map<string, number>();
  let port = 0;
  let server = listening(answer);
  const upstream: TestUpstream = {
    url: "",
    taken: [],
    requests: [],
    most: { ofOne: 0, ofAll: 0 },
    play: () => undefined,
    unknownKeys: new Set(),
    events: (key) =>
      upstream.taken
        .filter(({ api_key: own }) => key === undefined || own === key)
        .flatMap(({ batch }) => batch),
    async stop() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
    async start() {
      server = listening(answer, port);
      await once(server, "listening");
    },
  };
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
  Object.assign(upstream, { url: `http://127.0.0.1:${port}` });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await textOf(request);
    const asked = /^\/array\/([^/]+)\/config$/.exec(request.url ?? "")?.[1];
    if (asked !== undefined && !upstream.unknownKeys.has(asked)) {
      response.end("{}");
      return;
    }
    if (request.url !== "/batch/" || request.method !== "POST") {
      response.writeHead(404).end("not found");
      return;
    }
    const body = JSON.parse(text.toString()) as UpstreamBatch;
    const batch = { body, bytes: text.length, headers: request.headers };
    upstream.requests.push(batch);
    const line = `${body.api_key} ${body.historical_migration === true}`;
    const count = (by: number): void => {
      underWay.set(line, (underWay.get(line) ?? 0) + by);
      const { most } = upstream;
      most.ofOne = Math.max(most.ofOne, ...underWay.values());
      most.ofAll = Math.max(
        most.ofAll,
        [...underWay.values()].reduce((sum, one) => sum + one, 0),
      );
    };
    count(1);
    const played = await upstream.play(batch);
    count(-1);
    if (played === "cut") {
      response.destroy();
      return;
    }
    if (played === undefined) upstream.taken.push(body);
    const { status, body: said, headers } = played ?? { status: 200, body: { status: "Ok" } };
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof said === "string" ? said : JSON.stringify(said ?? {}));
  }
  return upstream;
}

type Answerer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

function listening(answer: Answerer, port = 0): ReturnType<typeof createServer> {
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  return server.listen(port, "127.0.0.1");
}

async function textOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  return request.headers["content-encoding"] === "gzip" ? gunzipSync(bytes) : bytes;
}
