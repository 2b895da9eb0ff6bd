// A request that is answered with a switch of protocols is a failed one, wherever we send it.

import { expect, onTestFinished, test } from "vitest";
import { Sender } from "../../../src/commands/import/sender.ts";
import type { PassedHead } from "../../../src/gateway/upstream/passed-head.ts";
import { UpstreamClient } from "../../../src/gateway/upstream/upstream-client.ts";
import { readAddress } from "../../../src/readers/sinks/clickhouse/address.ts";
import { ClickHouseClient } from "../../../src/readers/sinks/clickhouse/client.ts";
import { Upstream } from "../../../src/readers/sinks/posthog/upstream.ts";
import { startSwitchingServer } from "../../kit/switching-server.ts";

const stop = new AbortController().signal;
const switched = /101 Switching Protocols/;

test("what is passed on: the upstream is away, and no room is lost", async () => {
  const server = await startSwitchingServer();
  const client = new UpstreamClient({
    ...{ url: server.url, requestsMax: 1, timeoutMs: 60_000, monotonicMs: () => 0 },
  });
  onTestFinished(() => client.close());
  const head: PassedHead = {
    ...{ kind: "flags", method: "POST", path: "/flags/", query: "", headers: {}, ifNoneMatch: "" },
  };
  const ask = () => client.ask(head, Buffer.from("{}"), stop);
  expect(await ask()).toBe("away");
  expect(client.inflight).toBe(0);
  server.answer = "flags";
  expect(await ask()).toMatchObject({ status: 200, body: Buffer.from("flags") });
});

test("batches for PostHog: no answer, and the next one is sent", async () => {
  const server = await startSwitchingServer();
  const upstream = new Upstream({ url: server.url, requestsMax: 1, answerMsMax: 60_000 });
  onTestFinished(() => upstream.close());
  const post = () => upstream.post(() => Buffer.from("{}"), stop);
  await expect(post()).rejects.toThrow(switched);
  server.answer = "{}";
  expect(await post()).toMatchObject({ status: 200, text: "{}" });
});

test("statements for ClickHouse: a failure that says so", async () => {
  const server = await startSwitchingServer();
  const client = new ClickHouseClient(readAddress(server.url));
  onTestFinished(() => client.close());
  await expect(client.run("ask", "SELECT 1")).rejects.toThrow(switched);
});

test("an import: the same body is sent again", async () => {
  const server = await startSwitchingServer();
  const said: (string | undefined)[] = [];
  const sender = new Sender({
    ...{ url: new URL(server.url), gzip: false, giveUpAfterMs: 60_000, stop },
    trouble: (why) => {
      said.push(why);
      server.answer = '{"status":"Ok","accepted":1,"dropped":0}';
    },
  });
  onTestFinished(() => sender.close());
  expect(await sender.send(Buffer.from("[1]"), 1)).toMatchObject({ kind: "done", accepted: 1 });
  expect(said).toEqual([expect.stringMatching(switched), undefined]);
});
