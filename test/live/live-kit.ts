import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { onTestFinished } from "vitest";
import type { WatchOptions } from "../../src/live/watch.ts";
import type { TestNatsServer } from "../kit/nats-server.ts";

export interface ShownEvent {
  readonly project: string;
  readonly event: string;
  readonly id: string;
  readonly text: string;
  readonly bytes: number;
  readonly isCut: boolean;
  readonly wasThere?: boolean;
}

export interface TestViewer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  said<T>(name: "state" | "clientWarnings" | "events" | "unknown" | "history" | "projects"): T[];
  events(): ShownEvent[];
  skipped(): number;
  ended(): boolean;
  readonly response: IncomingMessage;
  leave(): void;
}

export const quietSources: Omit<WatchOptions, "connect"> = {
  counts: async () => [],
  clientWarnings: async () => [],
  readiness: async () => [],
  about: () => ({}),
  upMs: () => 0,
  monotonicMs: () => performance.now(),
  showsEvents: true,
  subjectPrefix: "penstock",
  projectIds: async () => [],
  sourcesOf: () => [{ stream: "PENSTOCK_LIVE_0" }],
};

export async function watch(
  adminUrl: string,
  { path = "/live", headers = {} }: { path?: string; headers?: Record<string, string> } = {},
): Promise<TestViewer> {
  const messages: { name: string; data: unknown }[] = [];
  let ended = false;
  let sent: ClientRequest | undefined;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent = request(adminUrl + path, { headers, agent: false }, resolve);
    sent.on("error", (error) => (ended ? undefined : reject(error)));
    sent.end();
  });
  const leave = (): void => {
    ended = true;
    sent?.destroy();
  };
  onTestFinished(leave);
  let text = "";
  response.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    const whole = text.split("\n\n");
    text = whole.pop() ?? "";
    for (const message of whole) {
      const match = /^event: (\w+)\ndata: ([^\n]*)$/.exec(message);
      if (match !== null) messages.push({ name: match[1] ?? "", data: JSON.parse(match[2] ?? "") });
    }
  });
  response.on("error", () => {});
  response.on("close", () => {
    ended = true;
  });
  const said = <T>(name: string): T[] =>
    messages.filter((message) => message.name === name).map(({ data }) => data as T);
  const batches = () => said<{ events: ShownEvent[]; skipped: number }>("events");
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    said,
    events: () => batches().flatMap(({ events }) => events),
    skipped: () => batches().reduce((sum, { skipped }) => sum + skipped, 0),
    ended: () => ended,
    response,
    leave,
  };
}

export async function consumersOn({
  url,
  token,
}: Pick<TestNatsServer, "url" | "token">): Promise<number> {
  const connection = await connect({ servers: url, ...(token === undefined ? {} : { token }) });
  try {
    const manager = await jetstreamManager(connection);
    let consumers = 0;
    for (const stream of ["PENSTOCK_LIVE_0", "PENSTOCK_HISTORICAL_0"]) {
      consumers += (await manager.streams.info(stream)).state.consumer_count;
    }
    return consumers;
  } finally {
    await connection.close();
  }
}
