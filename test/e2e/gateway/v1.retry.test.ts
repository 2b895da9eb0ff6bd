import { randomUUID } from "node:crypto";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterEach, describe, expect, test } from "vitest";
import { startTestGateway, type TestGateway, type TestProject, until } from "../../kit/gateway.ts";
import {
  outcomes,
  postV1,
  type V1Answer,
  type V1Event,
  v1Body,
  v1Event,
  v1Headers,
} from "../../kit/v1-requests.ts";

let gateway: TestGateway;

afterEach(async () => {
  await gateway.stop();
});

async function uuids(project: TestProject): Promise<unknown[]> {
  return (await gateway.events(project)).map(({ uuid }) => uuid);
}

function uuidsOf({ json }: V1Answer, ...wanted: string[]): string[] {
  return Object.entries(json.results ?? {})
    .filter(([, { result }]) => wanted.includes(result))
    .map(([uuid]) => uuid);
}

function large(index: number): V1Event {
  return v1Event({ event: `e${index}`, properties: { text: "x".repeat(60_000) } });
}

describe("a retry in the v1 protocol", () => {
  test("of the same request has the same answer", async () => {
    gateway = await startTestGateway();
    const project = await gateway.project();
    const batch = [v1Event(), v1Event({ event: "" }), v1Event()];
    const requestId = randomUUID();
    const first = await postV1(gateway, v1Body(batch), v1Headers(project.key, requestId));
    const again = await postV1(gateway, v1Body(batch, { created_at: "2026-01-01T00:00:00Z" }), {
      ...v1Headers(project.key, requestId.toUpperCase()),
      "PostHog-Attempt": "2",
    });
    expect(outcomes(first)).toEqual(["ok", "drop: no_event", "ok"]);
    expect(again.text).toBe(first.text);
    expect(await uuids(project)).toEqual([batch[0]?.uuid, batch[2]?.uuid]);
    await postV1(gateway, v1Body(batch), v1Headers(project.key));
    expect(await uuids(project)).toHaveLength(4);
    await postV1(gateway, v1Body([v1Event()]), v1Headers(project.key, requestId));
    expect(await uuids(project)).toHaveLength(5);
  });

  test("is recognised in each of its many frames", async () => {
    gateway = await startTestGateway();
    const project = await gateway.project();
    const batch = Array.from({ length: 40 }, (_, index) => large(index));
    const headers = v1Headers(project.key);
    for (let attempt = 0; attempt < 2; attempt++) {
      const answer = await postV1(gateway, v1Body(batch), headers);
      expect(outcomes(answer)).toEqual(batch.map(() => "ok"));
    }
    expect(await gateway.frames(project)).toHaveLength(10);
    expect(await uuids(project)).toEqual(batch.map(({ uuid }) => uuid));
  });

  test("is requested for events that a full stream did not store", async () => {
    gateway = await startTestGateway({
      env: { PENSTOCK_STREAM_BYTES_MAX: String(2 * 1_048_576), PENSTOCK_PROJECT_SHARE: "100" },
    });
    const project = await gateway.project();
    const batch = [
      v1Event({ event: "" }),
      ...Array.from({ length: 60 }, (_, index) => large(index)),
    ];
    const headers = v1Headers(project.key);
    const answer = await postV1(gateway, v1Body(batch), headers);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("retry-after")).toMatch(/^[12]$/);
    expect(Object.keys(answer.json.results ?? {})).toEqual(batch.map(({ uuid }) => uuid));
    const stored = uuidsOf(answer, "ok");
    const left = uuidsOf(answer, "retry");
    expect(stored.length).toBeGreaterThan(0);
    expect(left.length).toBeGreaterThan(0);
    expect(uuidsOf(answer, "drop")).toEqual([batch[0]?.uuid]);
    expect(await uuids(project)).toEqual(stored);

    const rest = batch.filter(({ uuid }) => left.includes(uuid));
    const refused = await postV1(gateway, v1Body(rest), headers);
    expect(refused).toMatchObject({ status: 503, json: { error: "store_full" } });
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);

    const connection = await connect({ servers: gateway.nats.url });
    await (await jetstreamManager(connection)).streams.purge("PENSTOCK_LIVE_0");
    await connection.close();
    await until(
      async () => (await postV1(gateway, v1Body(rest.slice(0, 20)), headers)).status === 200,
      5_000,
    );
    expect(await uuids(project)).toEqual(left.slice(0, 20));
  });

  test("is requested with 503 if the store does not respond", async () => {
    gateway = await startTestGateway({
      env: { PENSTOCK_REQUEST_TIMEOUT_MS: "600", PENSTOCK_ACK_TIMEOUT_MS: "150" },
    });
    const project = await gateway.project();
    const batch = [v1Event(), v1Event({ event: "" }), v1Event()];
    const headers = v1Headers(project.key);
    gateway.nats.freeze();
    const unknown = await postV1(gateway, v1Body(batch), headers);
    expect(unknown).toMatchObject({ status: 503, json: { error: "timeout" } });
    expect(Number(unknown.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    gateway.nats.thaw();
    let answer = unknown;
    await until(async () => {
      answer = await postV1(gateway, v1Body(batch), headers);
      return answer.status === 200;
    });
    expect(outcomes(answer)).toEqual(["ok", "drop: no_event", "ok"]);
    expect(await uuids(project)).toEqual([batch[0]?.uuid, batch[2]?.uuid]);
  });

  test("is recognised without the dropped events", async () => {
    gateway = await startTestGateway({
      env: { PENSTOCK_REQUEST_TIMEOUT_MS: "600", PENSTOCK_ACK_TIMEOUT_MS: "150" },
    });
    const project = await gateway.project();
    const [first, last] = [v1Event(), v1Event()];
    const headers = v1Headers(project.key);
    gateway.nats.freeze();
    const unknown = await postV1(gateway, v1Body([first, v1Event({ event: "" }), last]), headers);
    expect(unknown).toMatchObject({ status: 503, json: { error: "timeout" } });
    gateway.nats.thaw();
    const created = JSON.stringify(new Date().toISOString());
    const rest = `{"created_at":${created},"batch":[ ${JSON.stringify(first)},\n ${JSON.stringify(last)} ]}`;
    let answer = unknown;
    await until(async () => {
      answer = await postV1(gateway, rest, { ...headers, "PostHog-Attempt": "2" });
      return answer.status === 200;
    });
    expect(outcomes(answer)).toEqual(["ok", "ok"]);
    expect(await uuids(project)).toEqual([first.uuid, last.uuid]);
  });

  test("is not needed if nats-server restarts in time", async () => {
    gateway = await startTestGateway();
    const project = await gateway.project();
    const batch = [v1Event(), v1Event()];
    gateway.nats.freeze();
    const waiting = postV1(gateway, v1Body(batch), v1Headers(project.key));
    await until(async () => /penstock_frames_unacked 1$/m.test(await gateway.metrics()));
    await gateway.nats.kill();
    await until(async () => /penstock_nats_connected 0$/m.test(await gateway.metrics()));
    const last = v1Event();
    const later = postV1(gateway, v1Body([last]), v1Headers(project.key));
    await gateway.nats.restart();
    expect(outcomes(await waiting)).toEqual(["ok", "ok"]);
    expect(outcomes(await later)).toEqual(["ok"]);
    expect(await uuids(project)).toEqual([...batch, last].map(({ uuid }) => uuid));
  });
});
