import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { errorTable } from "../../../src/platform/base/errors.ts";
import { startTestGateway, type TestGateway } from "../../kit/gateway.ts";

async function start(): Promise<{ gateway: TestGateway; key: string }> {
  const gateway = await startTestGateway();
  onTestFinished(() => gateway.stop());
  return { gateway, key: (await gateway.project()).key };
}

function post({ url }: TestGateway, body: Buffer): Promise<Response> {
  const headers = { "Content-Encoding": "gzip" };
  return fetch(`${url}/batch/`, { method: "POST", headers, body });
}

function batchOf(key: string, events: number, { text, number }: { text: string; number: number }) {
  const event = JSON.stringify({ event: "e", distinct_id: "u", properties: { text } });
  return `{"api_key":"${key}","number":${number},"batch":[${Array(events).fill(event).join(",")}]}`;
}

test("the expansion of a body is charged once to its project's allowance", async () => {
  const { gateway, key } = await start();
  // Each request uses almost 8 of the 64 MiB per minute.
  const statuses: number[] = [];
  for (let request = 0; request < 8; request++) {
    const body = batchOf(key, 20_000, { text: "", number: request });
    statuses.push((await post(gateway, gzipSync(body))).status);
  }
  expect(statuses).toEqual(Array(8).fill(200));
});

test("requests with a little highly compressible padding are stored", async () => {
  const { gateway, key } = await start();
  for (let request = 0; request < 40; request++) {
    const body = batchOf(key, 20, { text: "x".repeat(50_000), number: request });
    const packed = gzipSync(body);
    expect(body.length / packed.length).toBeGreaterThan(300);
    expect((await post(gateway, packed)).status).toBe(200);
  }
});

test("a request that would expand too far is answered 413", async () => {
  const { gateway, key } = await start();
  const response = await post(gateway, gzipSync(batchOf(key, 400_000, { text: "", number: 0 })));
  const answer = (await response.json()) as Record<string, unknown>;
  const { status, title } = errorTable.expands_too_far;
  expect(answer).toMatchObject({ code: "expands_too_far", status, title });
  expect(answer["detail"]).toMatch(/^\d+ bytes were sent and would be stored as about \d+ bytes/);
  expect(response.status).toBe(status);
  expect(response.headers.get("retry-after")).toBeNull();
  expect(await gateway.metrics()).toMatch(/^penstock_problems_total\{code="expands_too_far"\} 1$/m);
});
