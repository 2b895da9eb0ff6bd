import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { startDriver } from "../../faults/driver.ts";
import { createEvents } from "../../faults/event-kinds.ts";
import type { LoadShape } from "../../faults/senders.ts";

const shape: LoadShape = {
  singleConnections: 1,
  singlePauseMs: 1,
  batchConnections: 0,
  batchPauseMs: 1_000,
  batchEvents: 1,
  largePauseMs: 60_000,
  importPauseMs: 1_000,
  largeImportEvery: 1_000,
};

const turnedAway = 20;

test("the fault scenarios' driver reports one 401 among many answers", async () => {
  let requests = 0;
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => {
      const isSingle = request.url === "/capture/";
      const isBad = body.includes("phc_nobody") || (isSingle && body.includes('"properties":['));
      if (isSingle && !isBad) requests++;
      if (body.includes("phc_nobody") || requests === turnedAway) {
        response.writeHead(401).end('{"code":"unknown_api_key"}');
      } else if (isBad) {
        response.writeHead(400).end('{"code":"invalid_properties"}');
      } else {
        const accepted = body.split('"event":"fault test"').length - 1;
        response.end(`{"status":"Ok","accepted":${accepted},"dropped":0}`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const driver = startDriver({
    urls: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`],
    events: createEvents(10_000),
    load: "singles",
    shape,
    mayLoseConnections: true,
    mayRefuse: true,
    breakMs: 2_000,
  });
  await expect.poll(() => requests, { timeout: 30_000 }).toBeGreaterThan(30);
  await driver.stop();
  expect(driver.strange).toContain("401 unknown_api_key, not 200");
});
