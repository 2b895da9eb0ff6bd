import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, describe, expect, test } from "vitest";
import { bucketName, openBucket } from "../../../src/gateway/projects/registry/bucket.ts";
import { startTestGateway, type TestGateway, type TestProject, until } from "../../kit/gateway.ts";

let gateway: TestGateway;
let connection: NatsConnection;

afterEach(async () => {
  await connection.close();
  await gateway.stop();
});

async function start(): Promise<TestProject> {
  gateway = await startTestGateway();
  connection = await connect({
    servers: gateway.nats.url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
  });
  return await gateway.project();
}

async function readiness(): Promise<{ status: number; body: string }> {
  const response = await fetch(`${gateway.adminUrl}/readyz`);
  return { status: response.status, body: await response.text() };
}

const capture = (key: string) =>
  gateway.post("/capture/", { api_key: key, event: "e", distinct_id: "u" });
const place = () => ({ prefix: gateway.config.subjectPrefix, replicas: 1 });

async function deleteRegistry(): Promise<void> {
  await (await jetstreamManager(connection)).streams.delete(`KV_${bucketName(place().prefix)}`);
}

async function expectOutage(project: TestProject): Promise<void> {
  await until(async () => (await readiness()).status === 503);
  expect((await readiness()).body).toContain("the project registry");
  expect((await capture(project.key)).status).toBe(200);
  const other = await capture("phc_other");
  expect(other).toMatchObject({ status: 503, json: { code: "unavailable" } });
  expect(Number(other.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
}

describe("while the registry is lost, the gateway", () => {
  test("accepts known keys and returns 503 for all other keys", async () => {
    const project = await start();
    expect(await readiness()).toEqual({ status: 200, body: '{"status":"ready"}\n' });
    expect((await capture("phc_other")).status).toBe(401);
    await deleteRegistry();
    await expectOutage(project);
    const value = JSON.stringify({ id: project.id, name: "", keys: [project.key], enabled: true });
    await (await openBucket(connection, place())).put(project.id, value);
    await until(async () => (await readiness()).status === 200);
    expect((await capture(project.key)).status).toBe(200);
    // Keys that a reading in progress may still return stay uncertain for a moment.
    await until(async () => (await capture("phc_other")).status === 401);
  });

  test("never returns 401 for a known key", async () => {
    const project = await start();
    const statuses = new Set<number>();
    let stop = false;
    const sending = (async () => {
      while (!stop) statuses.add((await capture(project.key)).status);
    })();
    await deleteRegistry();
    await openBucket(connection, place());
    await until(async () => (await readiness()).status === 503);
    stop = true;
    await sending;
    expect([...statuses]).toEqual([200]);
  });

  test("returns 503 after a start without a registry if projects have events", async () => {
    const project = await start();
    expect((await capture(project.key)).status).toBe(200);
    await gateway.close();
    await deleteRegistry();
    const { nats } = gateway;
    gateway = await startTestGateway({ server: nats });
    expect((await readiness()).body).toContain("it no longer exists");
    expect(await capture(project.key)).toMatchObject({
      status: 503,
      json: { code: "unavailable" },
    });
    await expect(
      (await jetstreamManager(connection)).streams.info("KV_penstock_projects"),
    ).rejects.toThrow("not found");
    await gateway.close();
    await nats.remove();
  });

  test("returns 503 for a key that two projects claim", async () => {
    const project = await start();
    const value = JSON.stringify({
      id: "thief",
      name: "",
      keys: [project.key, "phc_thief"],
      enabled: true,
    });
    const bucket = await openBucket(connection, place());
    await bucket.put("thief", value);
    await until(async () => (await capture(project.key)).status === 503);
    expect((await capture(project.key)).json["detail"]).toContain("More than one project");
    expect((await capture("phc_thief")).status).toBe(200);
    await until(async () => (await readiness()).body.includes("warnings"));
    expect(await readiness()).toMatchObject({
      status: 200,
      body: expect.stringContaining(`${project.id} and thief`),
    });
    await bucket.delete("thief");
    await until(async () => (await capture(project.key)).status === 200);
    await until(async () => !(await readiness()).body.includes("warnings"));
  });

  test("is ready if no project was ever created", async () => {
    gateway = await startTestGateway();
    connection = await connect({ servers: gateway.nats.url });
    const { status, body } = await readiness();
    expect(status).toBe(200);
    expect(JSON.parse(body)).toEqual({
      status: "ready",
      warnings: [expect.stringContaining("there is no project")],
    });
  });
});
