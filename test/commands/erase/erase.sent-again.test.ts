import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { startTestGateway, type TestProject } from "../../kit/gateway.ts";
import { erased } from "./erase-kit.ts";

const gateway = await startTestGateway();
const connection = await connect({ servers: gateway.nats.url });
const historical = "PENSTOCK_HISTORICAL_0";

afterAll(async () => {
  await connection.close();
  await gateway.stop();
});

function bodyOf({ key }: TestProject): object {
  const batch = Array.from({ length: 2_000 }, (_, n) => ({
    event: "seen",
    uuid: `00000000-0000-4000-9000-${String(n).padStart(12, "0")}`,
    distinct_id: n < 800 || n % 500 === 7 ? "ada" : `other-${n}`,
    timestamp: "2026-11-20T10:00:00Z",
    properties: { n, text: "x".repeat(400) },
  }));
  return { api_key: key, historical_migration: true, batch };
}

async function theirNumbers(project: TestProject): Promise<unknown[]> {
  const events = await gateway.events(project, "historical");
  return events.map(({ properties: { n } }) => n).sort((a, b) => Number(a) - Number(b));
}

test("a request that is repeated after an erasure restores no erased event", async () => {
  const project = await gateway.project();
  const body = bodyOf(project);
  expect((await gateway.post("/batch/", body)).status).toBe(200);
  expect((await theirNumbers(project)).length).toBe(2_000);
  await erased({ natsUrl: gateway.nats.url, ids: ["ada"], project: project.id });
  const others = await theirNumbers(project);
  expect(others.length).toBe(1_198);
  const again = await gateway.post("/batch/", body);
  expect(again).toMatchObject({ status: 200, json: { accepted: 2_000 } });
  expect(await theirNumbers(project)).toEqual(others);
});

test("a repeated request is stored if the rewritten messages were purged", async () => {
  const project = await gateway.project();
  const body = bodyOf(project);
  await gateway.post("/batch/", body);
  await erased({ natsUrl: gateway.nats.url, ids: ["other-1999"], project: project.id });
  const filter = `penstock.historical.0.${project.id}`;
  await (await jetstreamManager(connection)).streams.purge(historical, { filter });
  expect(await theirNumbers(project)).toEqual([]);
  expect((await gateway.post("/batch/", body)).status).toBe(200);
  expect((await theirNumbers(project)).length).toBe(2_000);
});
