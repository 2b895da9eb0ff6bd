import { describe, expect, test } from "vitest";
import {
  heldBytesMax,
  itemBytesMax,
  projectBurstBytes,
} from "../../../src/gateway/quarantine/quarantine.ts";
import { createLog } from "../../../src/platform/base/log.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { until } from "../../kit/gateway.ts";
import { oldestNatsServer } from "../../kit/nats-server.ts";
import { rejectedOf, seriesValue, untilRejected } from "../../kit/rejected.ts";

const servers = [
  ["the oldest supported nats-server", { nats: { binary: oldestNatsServer() } }],
  ["the default nats-server", {}],
] as const;

describe.each(servers)("on %s, a rejected event", (_, options) => {
  test("is retained as sent, with the reason, while the valid events of its batch are stored", async () => {
    const gateway = await gatewayForFile(options);
    const project = await gateway.project();
    const wrong = '{ "event": "order" ,\n "properties":{"total": 1.10, "n":12345678901234567890}}';
    const valid = '{"event":"order","distinct_id":"u"}';
    const sentAt = new Date(Date.now() + 60_000).toISOString();
    const beforeMs = Date.now();
    const answer = await gateway.post(
      "/batch/",
      `{"api_key":"${project.key}","sent_at":"${sentAt}","batch":[${valid},${wrong},7,{"event":"x","distinct_id":"u","properties":3}]}`,
    );
    expect(answer.json).toMatchObject({ accepted: 1, dropped: 3 });
    const found = await untilRejected(gateway, project, 3);
    expect(found.map(({ reason, item }) => [reason, item])).toEqual([
      // The scanner turns line feeds between tokens into spaces.
      ["no_distinct_id", wrong.replace("\n", " ")],
      ["not_an_object", "7"],
      ["invalid_properties", '{"event":"x","distinct_id":"u","properties":3}'],
    ]);
    for (const one of found) {
      expect(one).toMatchObject({ project_id: project.id, lane: "live" });
      expect(one.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
      expect(Date.parse(one.received_at)).toBeGreaterThanOrEqual(beforeMs);
      expect(one.skew_ms).toBeGreaterThan(50_000);
    }
    expect(new Set(found.map(({ id }) => id)).size).toBe(3);
    expect(found[0]!.detail).toMatch(/^The event is not stored: distinct_id is absent/);
    expect(await gateway.events(project)).toHaveLength(1);
    expect(seriesValue(await gateway.metrics(), 'penstock_rejected_total{reason="no_event"}')).toBe(
      0,
    );
    const counted = 'penstock_rejected_total{reason="no_distinct_id"}';
    await until(async () => seriesValue(await gateway.metrics(), counted) === 1);
  });
});

describe("what is not retained", () => {
  test("nothing of a request that is unreadable, has no known key, or is a replay", async () => {
    const gateway = await gatewayForFile();
    const project = await gateway.project();
    const wrong = { event: "order" };
    const replay = await gateway.post("/batch/?replay=1", { api_key: project.key, batch: [wrong] });
    expect(replay.json).toMatchObject({ dropped: 1 });
    const unknown = await gateway.post("/batch/", { api_key: "phc_unknown", batch: [wrong] });
    expect(unknown.status).toBe(401);
    const unreadable = await gateway.post("/batch/", `{"api_key":"${project.key}","batch":[{]}`);
    expect(unreadable.status).toBe(400);
    // Items are stored in the order of their requests, so none can follow after this one.
    await gateway.post("/batch/", { api_key: project.key, batch: [{ distinct_id: "u" }] });
    const found = await untilRejected(gateway, project, 1);
    expect(found.map(({ item }) => item)).toEqual(['{"distinct_id":"u"}']);
  });

  test("an item that is too large is counted as lost", async () => {
    const gateway = await gatewayForFile();
    const project = await gateway.project();
    const batch = [{ properties: { text: "x".repeat(itemBytesMax) } }, { event: "small" }];
    expect((await gateway.post("/batch/", { api_key: project.key, batch })).status).toBe(200);
    const found = await untilRejected(gateway, project, 1);
    expect(found.map(({ item }) => item)).toEqual(['{"event":"small"}']);
    const lost = 'penstock_rejected_lost_total{cause="too_large"}';
    expect(seriesValue(await gateway.metrics(), lost)).toBe(1);
  });

  test("with PENSTOCK_REJECTED_BYTES=0, there is no stream, and items are only counted as dropped", async () => {
    const lines: string[] = [];
    const log = createLog("info", { write: (line) => lines.push(line) });
    const gateway = await gatewayForFile({ env: { PENSTOCK_REJECTED_BYTES: "0" }, log });
    expect(lines.join("")).toContain(
      "rejected events are only counted: PENSTOCK_REJECTED_BYTES is 0",
    );
    const project = await gateway.project();
    const answer = await gateway.post("/batch/", { api_key: project.key, batch: [{ event: "e" }] });
    expect(answer.json).toMatchObject({ dropped: 1 });
    const metrics = await gateway.metrics();
    expect(metrics).toContain('penstock_rejected_lost_total{cause="store"} 0');
    expect(metrics).not.toContain("penstock_rejected_held_bytes");
    expect(await rejectedOf(gateway, project)).toEqual([]);
  });
});

describe("a flood of rejected events", () => {
  test("of one project loses items beyond its burst, and none of another project", async () => {
    const gateway = await gatewayForFile();
    const [flooding, other] = await gateway.projects(2);
    const batch = Array.from({ length: 1_000 }, (_, n) => ({
      event: "e",
      n,
      text: "x".repeat(1_000),
    }));
    const body = JSON.stringify({ api_key: flooding!.key, batch });
    const sent = 12 * batch.length;
    expect(12 * body.length).toBeGreaterThan(2 * projectBurstBytes);
    for (let request = 0; request < 12; request++)
      expect((await gateway.post("/batch/", body)).json).toMatchObject({ dropped: 1_000 });
    await gateway.post("/batch/", { api_key: other!.key, batch: [{ event: "mine" }] });
    expect(await untilRejected(gateway, other!, 1)).toHaveLength(1);
    const stored = 'penstock_rejected_total{reason="no_distinct_id"}';
    const lost = 'penstock_rejected_lost_total{cause="overflow"}';
    await until(async () => {
      const metrics = await gateway.metrics();
      return seriesValue(metrics, stored) + seriesValue(metrics, lost) === sent + 1;
    });
    const metrics = await gateway.metrics();
    expect(seriesValue(metrics, stored)).toBeGreaterThan(1_500);
    expect(seriesValue(metrics, lost)).toBeGreaterThan(3_000);
    expect(await rejectedOf(gateway, flooding!)).toHaveLength(seriesValue(metrics, stored) - 1);
    expect(seriesValue(metrics, "penstock_rejected_held_bytes")).toBe(0);
    expect(heldBytesMax).toBeGreaterThan(projectBurstBytes);
  });

  test("fills the stream, which then discards its oldest items", async () => {
    const gateway = await gatewayForFile({ env: { PENSTOCK_REJECTED_BYTES: "1048576" } });
    const project = await gateway.project();
    const text = "x".repeat(100_000);
    for (let n = 0; n < 30; n++)
      await gateway.post("/batch/", { api_key: project.key, batch: [{ n, text }] });
    await until(async () =>
      (await rejectedOf(gateway, project)).some(({ item }) => item.startsWith('{"n":29,')),
    );
    const found = await rejectedOf(gateway, project);
    const numbers = found.map(({ item }) => (JSON.parse(item) as { n: number }).n);
    expect(numbers.length).toBeLessThan(11);
    expect(numbers).toEqual(
      Array.from({ length: numbers.length }, (_, at) => 30 - numbers.length + at),
    );
    expect(
      (await gateway.post("/capture/", { api_key: project.key, event: "e", distinct_id: "u" }))
        .status,
    ).toBe(200);
  });
});

describe("while the store is down", () => {
  test("a request with only rejected events is answered at once, and its items are stored later", async () => {
    const gateway = await gatewayForFile({ nats: { binary: oldestNatsServer() } });
    const project = await gateway.project();
    await untilStreamExists(gateway.metrics);
    await gateway.nats.stop();
    const body = { api_key: project.key, batch: [{ event: "e" }] };
    const sinceMs = performance.now();
    const answer = await gateway.post("/batch/", body);
    expect(answer.json).toMatchObject({ dropped: 1 });
    expect(performance.now() - sinceMs).toBeLessThan(1_000);
    await gateway.nats.restart();
    expect(await untilRejected(gateway, project, 1)).toHaveLength(1);
  });
});

async function untilStreamExists(metrics: () => Promise<string>): Promise<void> {
  await until(async () => (await metrics()).includes("penstock_rejected_stream_bytes{"));
}
