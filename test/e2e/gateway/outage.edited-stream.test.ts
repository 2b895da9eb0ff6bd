import { DiscardPolicy, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";

const gateway = await gatewayForFile();

async function edit(change: Partial<StreamConfig>): Promise<void> {
  const connection = await connect({ servers: gateway.nats.url });
  await (await jetstreamManager(connection)).streams.update("PENSTOCK_LIVE_0", change);
  await connection.close();
}

describe("after an edit of its stream, an event", () => {
  test("is answered 503 with the stream and the reason", async () => {
    const { key: api_key } = await gateway.project();
    const event = { api_key, event: "e", distinct_id: "u" };
    const imported = {
      api_key,
      historical_migration: true,
      batch: [{ event: "old", distinct_id: "u" }],
    };
    await edit({ discard: DiscardPolicy.Old, max_msgs: 2 });
    await until(async () => (await gateway.post("/capture/", event)).status === 503);
    const answer = await gateway.post("/capture/", event);
    expect(answer.json).toMatchObject({ status: 503, code: "unavailable" });
    expect(answer.json["detail"]).toContain(
      "Stream PENSTOCK_LIVE_0 cannot guarantee that acknowledged events stay stored: discard is old",
    );
    const ready = await fetch(`${gateway.adminUrl}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([
      503,
      expect.stringContaining("discard is old, not new"),
    ]);
    expect(await gateway.metrics()).toContain("penstock_streams_refused 1");
    expect((await gateway.post("/batch/", imported)).status).toBe(200);
    await edit({ discard: DiscardPolicy.New, max_msgs: -1 });
    await until(async () => (await gateway.post("/capture/", event)).status === 200);
  });

  test("that is too large for the stream is rejected alone", async () => {
    const project = await gateway.project();
    const event = (name: string, bytes: number) => {
      return { event: name, distinct_id: "u", properties: { text: "x".repeat(bytes) } };
    };
    const batch = [event("first", 10), event("large", 700_000), event("last", 10)];
    await edit({ max_msg_size: 600_000 });
    await until(async () => {
      const { json } = await gateway.post("/batch/", { api_key: project.key, batch });
      return json["accepted"] === 2;
    });
    const answer = await gateway.post("/batch/", { api_key: project.key, batch });
    expect(answer).toMatchObject({
      status: 200,
      json: { accepted: 2, errors: [{ index: 1, code: "event_too_large" }] },
    });
    // The gateway does not know the limit of the other lane's stream yet.
    const old = { api_key: project.key, historical_migration: true, batch };
    expect((await gateway.post("/batch/", old)).json["accepted"]).toBe(3);
    await edit({ max_msg_size: -1 });
  });
});
