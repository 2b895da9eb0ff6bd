import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";

const gateway = await gatewayForFile({ env: { PENSTOCK_STREAM_BYTES_MAX: String(2 * 1_048_576) } });

test("a full live stream answers 503 store_full and recovers", async () => {
  const project = await gateway.project();
  const event = { event: "e", distinct_id: "u", properties: { text: "x".repeat(100_000) } };
  let accepted = 0;
  let answer = await gateway.post("/capture/", { api_key: project.key, ...event });
  for (
    ;
    answer.status === 200;
    answer = await gateway.post("/capture/", { api_key: project.key, ...event })
  ) {
    accepted++;
    expect(accepted).toBeLessThan(25);
  }
  expect(answer.status).toBe(503);
  expect(answer.json["code"]).toBe("store_full");
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(await gateway.events(project)).toHaveLength(accepted);

  const batch = [{ event: "imported", distinct_id: "u" }];
  const historical = await gateway.post("/batch/", {
    api_key: project.key,
    batch,
    historical_migration: true,
  });
  expect(historical.status).toBe(200);

  const connection = await connect({ servers: gateway.nats.url });
  await (await jetstreamManager(connection)).streams.purge("PENSTOCK_LIVE_0");
  await connection.close();
  await until(
    async () =>
      (await gateway.post("/capture/", { api_key: project.key, ...event })).status === 200,
    5_000,
  );
});
