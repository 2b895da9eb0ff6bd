import { describe, expect, onTestFinished, test } from "vitest";
import { consume } from "../../../src/readers/consumer/consume.ts";
import { startTestGateway, until } from "../../kit/gateway.ts";
import { type OtlpReceiver, startOtlpReceiver } from "../../kit/otlp-receiver.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const parentSpanId = "00f067aa0ba902b7";
const sampled = { traceparent: `00-${traceId}-${parentSpanId}-01` };
const unsampled = { traceparent: `00-${traceId}-${parentSpanId}-00` };
const event = { event: "e", distinct_id: "u" };

async function start(env: Record<string, string> = {}) {
  const receiver = await startOtlpReceiver();
  const gateway = await startTestGateway({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      // Only requests with a traceparent are traced.
      OTEL_TRACES_SAMPLER: "parentbased_always_off",
      ...env,
    },
  });
  onTestFinished(async () => {
    await gateway.stop();
    receiver.close();
  });
  return { receiver, gateway, project: await gateway.project() };
}

function spansOf({ spans }: OtlpReceiver) {
  const of = (kind: number) => spans.filter((span) => span.kind === kind);
  return { servers: of(2), producers: of(4) };
}

describe("with an endpoint for OpenTelemetry", () => {
  test("a sampled request and its message have spans", async () => {
    const { receiver, gateway, project } = await start({
      OTEL_EXPORTER_OTLP_HEADERS: "x-token=a%20b",
      OTEL_SERVICE_NAME: "intake",
      OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test",
    });
    const body = { api_key: project.key, ...event, properties: { plan: "secret-plan" } };
    const huge = { ...sampled, tracestate: "x=".padEnd(2_000, "y") };
    expect((await gateway.post("/capture/?ip=1", body, huge)).status).toBe(200);
    expect((await gateway.post("/capture/", body, unsampled)).status).toBe(200);
    expect((await gateway.post("/capture/", body)).status).toBe(200);
    expect((await gateway.post("/capture/", { ...body, api_key: "phc_x" }, sampled)).status).toBe(
      401,
    );
    const frames = await gateway.frames(project);
    // The spans have not waited long enough for an export, so only the flush at the end exports
    // them.
    await gateway.close();

    const { servers, producers } = spansOf(receiver);
    const [server, refused] = servers;
    const [producer] = producers;
    expect([servers.length, producers.length]).toEqual([2, 1]);
    expect(server).toMatchObject({
      traceId,
      parentSpanId,
      name: "POST /capture/",
      status: 0,
      attributes: {
        "url.path": "/capture/",
        "http.response.status_code": 200,
        "penstock.project": project.id,
        "penstock.events.accepted": 1,
        "penstock.events.dropped": 0,
      },
      resource: {
        "service.name": "intake",
        "service.version": expect.any(String),
        "service.instance.id": expect.any(String),
        "deployment.environment.name": "test",
      },
    });
    expect(refused!.attributes).toMatchObject({
      "http.response.status_code": 401,
      "error.type": "unknown_api_key",
    });
    expect(producer).toMatchObject({
      traceId,
      parentSpanId: server!.spanId,
      attributes: {
        "messaging.system": "nats",
        "penstock.stream": "PENSTOCK_LIVE_0",
        "penstock.sequence": 1,
        "penstock.outcome": "stored",
      },
    });
    expect(frames.map(({ headers }) => headers["traceparent"])).toEqual([
      `00-${traceId}-${producer!.spanId}-01`,
      undefined,
      undefined,
    ]);
    const all = JSON.stringify([receiver.spans, receiver.metrics]);
    for (const secret of [project.key, "phc_x", "secret-plan", "127.0.0.1"])
      expect(all).not.toContain(secret);
    expect(receiver.headers[0]).toMatchObject({ "x-token": "a b" });
  });

  test("a program that uses the consumer package gets the context of a stored message", async () => {
    const { receiver, gateway, project } = await start();
    const body = { api_key: project.key, ...event };
    expect((await gateway.post("/capture/", body, sampled)).status).toBe(200);
    expect((await gateway.post("/capture/", body, unsampled)).status).toBe(200);
    const frames = consume({ nats: { servers: gateway.nats.url }, durable: "traced" });
    onTestFinished(() => frames.stop({ timeoutMs: 0 }));
    const contexts: (string | undefined)[] = [];
    for await (const frame of frames) {
      contexts.push(frame.traceparent);
      frame.ack();
      if (contexts.length === 2) break;
    }
    await gateway.close();
    const { producers } = spansOf(receiver);
    expect(producers).toHaveLength(1);
    expect(contexts).toEqual([`00-${traceId}-${producers[0]!.spanId}-01`, undefined]);
  });

  test("every kind of request has a producer span with its counts", async () => {
    const { receiver, gateway, project } = await start();
    const historical = { api_key: project.key, historical_migration: true, batch: [event, {}] };
    expect((await gateway.post("/batch/", historical, sampled)).status).toBe(200);
    const uuid = "0199aaaa-0000-7000-8000-000000000001";
    const v1 = { created_at: new Date().toISOString(), batch: [{ ...event, uuid }] };
    const headers = { ...sampled, authorization: `Bearer ${project.key}` };
    await gateway.post("/i/v1/analytics/events", v1, headers);
    await gateway.close();
    const { servers, producers } = spansOf(receiver);
    expect(servers.map(({ attributes }) => attributes["penstock.events.accepted"])).toEqual([1, 1]);
    expect(servers[0]!.attributes).toMatchObject({
      "penstock.lane": "historical",
      "penstock.events.dropped": 1,
    });
    expect(producers.map(({ parentSpanId: parent }) => parent)).toEqual(
      servers.map(({ spanId }) => spanId),
    );
  });

  test("requests that share a message are linked with its span", async () => {
    const { receiver, gateway, project } = await start();
    const body = { api_key: project.key, ...event };
    await Promise.all(Array.from({ length: 20 }, () => gateway.post("/capture/", body, sampled)));
    const frames = await gateway.frames(project);
    await gateway.close();
    const { servers, producers } = spansOf(receiver);
    expect(servers).toHaveLength(20);
    expect(producers).toHaveLength(frames.length);
    expect(frames.map(({ headers }) => headers["traceparent"]).sort()).toEqual(
      producers.map(({ spanId }) => `00-${traceId}-${spanId}-01`).sort(),
    );
    const named = producers.flatMap((one) => [one.parentSpanId, ...one.links.map((l) => l.spanId)]);
    expect(named.sort()).toEqual(servers.map(({ spanId }) => spanId).sort());
  });

  test("the exported metrics are the metrics at /metrics", async () => {
    const { receiver, gateway, project } = await start({ OTEL_METRIC_EXPORT_INTERVAL: "100" });
    await gateway.post("/capture/", { api_key: project.key, ...event });
    const valueIn = (name: string, attributes: object): number | undefined =>
      receiver.metrics
        .findLast((metric) => metric.name === name)
        ?.points.find((point) => JSON.stringify(point.attributes) === JSON.stringify(attributes))
        ?.value;
    const answered = { route: "capture", status: "200" };
    await until(() => valueIn("penstock_requests_total", answered) === 1);
    expect(valueIn("penstock_request_duration_seconds", { route: "capture" })).toBe(1);
    expect(valueIn("penstock_projects", {})).toBe(1);
    expect(receiver.metrics[0]!.resource).toMatchObject({ "service.name": "penstock" });
    const names = new Set(receiver.metrics.map(({ name }) => name));
    const shown = [...(await gateway.metrics()).matchAll(/^# TYPE (\S+)/gm)].map(
      ([, name]) => name,
    );
    expect(shown.filter((name) => !names.has(name!))).toEqual([]);
  });

  test("a failing or stalled receiver delays no answer", async () => {
    const { receiver, gateway, project } = await start({ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "" });
    receiver.answer = (response) => void response.writeHead(400).end();
    const body = { api_key: project.key, ...event };
    expect((await gateway.post("/capture/", body, sampled)).status).toBe(200);
    const failed = 'penstock_otel_spans_total{outcome="failed"} 2';
    await until(async () => (await gateway.metrics()).includes(failed));
    receiver.answer = () => {};
    expect((await gateway.post("/capture/", body, sampled)).status).toBe(200);
    const beganMs = performance.now();
    await gateway.close();
    expect(performance.now() - beganMs).toBeLessThan(5_000);
    expect(receiver.spans).toEqual([]);
  });
});

test.each([
  ["no endpoint is set", {}],
  ["OTEL_SDK_DISABLED is true", { OTEL_SDK_DISABLED: "true" }],
])("a traceparent is not stored if %s", async (_, env) => {
  const receiver = await startOtlpReceiver();
  const endpoint = {
    ...env,
    ...("OTEL_SDK_DISABLED" in env && { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }),
  };
  const gateway = await startTestGateway({ env: endpoint });
  onTestFinished(async () => {
    await gateway.stop();
    receiver.close();
  });
  const project = await gateway.project();
  await gateway.post("/capture/", { api_key: project.key, ...event }, sampled);
  const [frame] = await gateway.frames(project);
  expect(frame!.headers).not.toHaveProperty("traceparent");
  expect(await gateway.metrics()).not.toContain("penstock_otel_spans_total{");
  await gateway.close();
  expect(receiver.headers).toEqual([]);
});
