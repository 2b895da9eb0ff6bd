import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { startTestGateway } from "../../testkit/gateway.ts";

test("what a body expands to is taken once a request from what its project has a minute", async () => {
  const gateway = await startTestGateway();
  onTestFinished(() => gateway.stop());
  const { key } = await gateway.project();
  // Each comes to most of a MB of records, of 8 MiB a minute, and is placed over many turns.
  const event = '{"event":"e","distinct_id":"u"}';
  const statuses: number[] = [];
  for (let request = 0; request < 8; request++) {
    const batch = Array.from({ length: 2_000 }, () => event).join(",");
    const body = gzipSync(`{"api_key":"${key}","number":${request},"batch":[${batch}]}`);
    const headers = { "Content-Encoding": "gzip" };
    const response = await fetch(`${gateway.url}/batch/`, { method: "POST", headers, body });
    statuses.push(response.status);
  }
  expect(statuses).toEqual(Array(8).fill(200));
});
