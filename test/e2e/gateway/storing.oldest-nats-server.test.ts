import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";
import { oldestNatsServer } from "../../kit/nats-server.ts";

const gateway = await gatewayForFile({ nats: { binary: oldestNatsServer() } });

const numbered = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ event: "e", distinct_id: "u", properties: { n } }));

describe("on the oldest supported nats-server", () => {
  test("single events and batches are stored as they were sent", async () => {
    const project = await gateway.project();
    for (const event of ["one", "two", "three"]) {
      const answer = await gateway.post("/capture/", {
        api_key: project.key,
        event,
        distinct_id: "u",
      });
      expect(answer.status).toBe(200);
    }
    const answer = await gateway.post("/batch/", { api_key: project.key, batch: numbered(100) });
    expect(answer.json).toMatchObject({ accepted: 100 });
    const stored = await gateway.events(project);
    expect(stored.slice(0, 3).map(({ event }) => event)).toEqual(["one", "two", "three"]);
    expect(stored.slice(3).map(({ properties }) => properties["n"])).toEqual(
      numbered(100).map((_, n) => n),
    );
  });

  test("a large body that is sent twice is stored once", async () => {
    const project = await gateway.project();
    const batch = numbered(3_000).map((item) => ({
      ...item,
      uuid: randomUUID(),
      properties: { ...item.properties, text: "x".repeat(500) },
    }));
    const body = JSON.stringify({ api_key: project.key, batch });
    for (let tries = 0; tries < 2; tries++)
      expect((await gateway.post("/batch/", body)).status).toBe(200);
    expect(await gateway.events(project)).toHaveLength(3_000);
  });

  test("history is stored in order", async () => {
    const project = await gateway.project();
    for (let round = 0; round < 5; round++) {
      const batch = [{ event: String(round), distinct_id: "u" }];
      const answer = await gateway.post("/batch/", {
        api_key: project.key,
        historical_migration: true,
        batch,
      });
      expect(answer.status).toBe(200);
    }
    expect((await gateway.events(project, "historical")).map(({ event }) => event)).toEqual([
      "0",
      "1",
      "2",
      "3",
      "4",
    ]);
  });

  test("every acknowledged event is stored after a kill", async () => {
    const project = await gateway.project();
    const event = { api_key: project.key, event: "e", distinct_id: "u" };
    for (let n = 0; n < 20; n++) expect((await gateway.post("/capture/", event)).status).toBe(200);
    await gateway.nats.kill();
    await gateway.nats.restart();
    await until(async () => (await gateway.post("/capture/", event)).status === 200);
    expect((await gateway.events(project)).length).toBeGreaterThanOrEqual(21);
  });
});
