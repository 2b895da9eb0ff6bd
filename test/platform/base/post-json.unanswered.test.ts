import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { Sender } from "../../../src/commands/import/sender.ts";
import type { PassedHead } from "../../../src/gateway/upstream/passed-head.ts";
import { UpstreamClient } from "../../../src/gateway/upstream/upstream-client.ts";
import { ClickHouseClient, readAddress } from "../../../src/readers/sinks/clickhouse/client.ts";
import { Upstream } from "../../../src/readers/sinks/posthog/upstream.ts";

const stop = new AbortController().signal;
const switched = /101 Switching Protocols/;

interface SwitchingServer {
  readonly url: string;
  answer: string | undefined;
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi";

async function startSwitchingServer(): Promise<SwitchingServer> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      const { answer } = switcher;
      if (answer === undefined) socket.write(switching);
      else
        socket.end(
          `HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${answer.length}\r\n\r\n${answer}`,
        );
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const switcher: SwitchingServer = { url: `http://127.0.0.1:${port}`, answer: undefined };
  return switcher;
}

test("a forwarded request frees its slot if the answer switches protocols", async () => {
  const server = await startSwitchingServer();
  const client = new UpstreamClient({
    url: server.url,
    requestsMax: 1,
    timeoutMs: 60_000,
    monotonicMs: () => 0,
  });
  onTestFinished(() => client.close());
  const head: PassedHead = {
    kind: "flags",
    method: "POST",
    path: "/flags/",
    query: "",
    headers: {},
    ifNoneMatch: "",
  };
  const ask = () => client.ask(head, Buffer.from("{}"), stop);
  expect(await ask()).toBe("unavailable");
  expect(client.inflight).toBe(0);
  server.answer = "flags";
  expect(await ask()).toMatchObject({ status: 200, body: Buffer.from("flags") });
});

test("a request of the PostHog sink fails if the answer switches protocols", async () => {
  const server = await startSwitchingServer();
  const upstream = new Upstream({ url: server.url, requestsMax: 1, answerMsMax: 60_000 });
  onTestFinished(() => upstream.close());
  const post = () => upstream.post(() => Buffer.from("{}"), stop);
  await expect(post()).rejects.toThrow(switched);
  server.answer = "{}";
  expect(await post()).toMatchObject({ status: 200, text: "{}" });
});

test("a ClickHouse statement fails if the answer switches protocols", async () => {
  const server = await startSwitchingServer();
  const client = new ClickHouseClient(readAddress(server.url));
  onTestFinished(() => client.close());
  await expect(client.run("ask", "SELECT 1")).rejects.toThrow(switched);
});

test("an import repeats the same body if the answer switches protocols", async () => {
  const server = await startSwitchingServer();
  const said: (string | undefined)[] = [];
  const sender = new Sender({
    url: new URL(server.url),
    gzip: false,
    giveUpAfterMs: 60_000,
    stop,
    trouble: (why) => {
      said.push(why);
      server.answer = '{"status":"Ok","accepted":1,"dropped":0}';
    },
  });
  onTestFinished(() => sender.close());
  expect(await sender.send(Buffer.from("[1]"), 1)).toMatchObject({ kind: "done", accepted: 1 });
  expect(said).toEqual([expect.stringMatching(switched), undefined]);
});
