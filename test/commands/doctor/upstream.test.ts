// Whether doctor finds the upstream, and what it says where there is none.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { checkUpstream } from "../../../src/commands/doctor/upstream.ts";

async function upstreamThatSays(status: number): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status).end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([
  [200, "ok", /answers$/],
  [404, "ok", /answers \(404 for \/static\/array.js\)/],
  [502, "warn", /answers 502: .*events are stored/],
] as const)("an upstream that says %d: %s", async (status, level, found) => {
  const url = await upstreamThatSays(status);
  const [finding] = await checkUpstream({ url, timeoutMs: 5_000 });
  expect(finding).toMatchObject({ check: "upstream", level });
  expect(finding?.found).toMatch(found);
});

test("one that is not there is a warning, and none is no finding", async () => {
  const [finding] = await checkUpstream({ url: "http://127.0.0.1:1", timeoutMs: 5_000 });
  expect(finding).toMatchObject({ level: "warn" });
  expect(finding?.found).toMatch(/127\.0\.0\.1:1 does not answer \(.+\): flags/);
  expect(await checkUpstream({ url: undefined, timeoutMs: 1 })).toEqual([]);
});
