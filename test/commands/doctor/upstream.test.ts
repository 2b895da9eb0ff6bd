import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { checkUpstream } from "../../../src/commands/doctor/ports.ts";

async function upstreamThatSays(status: number): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status).end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([
  [200, "ok", /responds$/],
  [404, "ok", /responds \(404 for \/static\/array.js\)/],
  [502, "warn", /responds with 502: .*events are stored/],
] as const)("doctor reports an upstream that answers %d as %s", async (status, level, found) => {
  const url = await upstreamThatSays(status);
  const [finding] = await checkUpstream({ url, timeoutMs: 5_000 });
  expect(finding).toMatchObject({ check: "upstream", level });
  expect(finding?.found).toMatch(found);
});

test("doctor warns if the upstream does not respond", async () => {
  const [finding] = await checkUpstream({ url: "http://127.0.0.1:1", timeoutMs: 5_000 });
  expect(finding).toMatchObject({ level: "warn" });
  expect(finding?.found).toMatch(/127\.0\.0\.1:1 does not respond \(.+\): flags/);
  expect(await checkUpstream({ url: undefined, timeoutMs: 1 })).toEqual([]);
});
