import { setTimeout as delay } from "node:timers/promises";
import { type Link, SpanKind, SpanStatusCode } from "@opentelemetry/api";
import { hrTimeToMilliseconds } from "@opentelemetry/core";
import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { expect, test } from "vitest";
import { Sampling } from "../../../src/platform/otel/sampling.ts";
import { RequestTracing } from "../../../src/platform/otel/spans.ts";

const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const to = { subject: "penstock.live.0.demo", stream: { name: "PENSTOCK_LIVE_0" } };
const demo = { projectId: "demo", lane: "live" } as const;
const message = { events: 2, length: 700 };

function traced() {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  const sampling = new Sampling({ sampler: "parentbased_always_on", ratio: 1 });
  const tracing = new RequestTracing(provider.getTracer("test"), sampling);
  const begin = (traceparent = "") =>
    tracing.begin({ traceparent, method: "POST", path: "/capture/", isRoute: true });
  return { tracing, begin, spans: () => exporter.getFinishedSpans() };
}

const idsOf = (links: readonly Link[]) => links.map(({ context }) => context.spanId);

test("a request and its message are spans of the client's trace", () => {
  const { begin, spans } = traced();
  const request = begin(`00-${traceId}-00f067aa0ba902b7-01`)!;
  const sent = request.publishes(undefined, to)!;
  sent.sequence = 7;
  sent.ended("stored", undefined, message);
  request.counted(2, 1);
  request.answered(200, undefined, demo);
  const [producer, server] = spans();
  expect(server).toMatchObject({
    name: "POST /capture/",
    kind: SpanKind.SERVER,
    parentSpanContext: { traceId, spanId: "00f067aa0ba902b7" },
    status: { code: SpanStatusCode.UNSET },
    attributes: {
      "http.request.method": "POST",
      "url.path": "/capture/",
      "http.route": "/capture/",
      "http.response.status_code": 200,
      "penstock.project": "demo",
      "penstock.lane": "live",
      "penstock.events.accepted": 2,
      "penstock.events.dropped": 1,
    },
  });
  expect(producer).toMatchObject({
    name: "publish PENSTOCK_LIVE_0",
    kind: SpanKind.PRODUCER,
    parentSpanContext: { traceId, spanId: server!.spanContext().spanId },
    attributes: {
      "messaging.system": "nats",
      "messaging.destination.name": "penstock.live.0.demo",
      "penstock.stream": "PENSTOCK_LIVE_0",
      "penstock.sequence": 7,
      "penstock.events": 2,
      "penstock.outcome": "stored",
      "messaging.message.body.size": 700,
    },
  });
  expect(sent.traceparent).toBe(`00-${traceId}-${producer!.spanContext().spanId}-01`);
});

test("a message of several requests is in the first request's trace", () => {
  const { begin, spans } = traced();
  const [first, second] = [begin()!, begin()!];
  const sent = first.publishes(undefined, to)!;
  for (const request of [second, first, second]) expect(request.publishes(sent, to)).toBe(sent);
  sent.ended("stored", undefined, message);
  for (const request of [first, second]) request.answered(200, undefined, demo);
  const [producer, server, other] = spans();
  expect(producer!.parentSpanContext?.spanId).toBe(server!.spanContext().spanId);
  expect(idsOf(producer!.links)).toEqual([other!.spanContext().spanId]);
  expect(idsOf(server!.links)).toEqual([]);
  expect(idsOf(other!.links)).toEqual([producer!.spanContext().spanId]);
  expect(other!.spanContext().traceId).not.toBe(server!.spanContext().traceId);
});

test("a span has the status ERROR only for a server's error", () => {
  const { begin, spans } = traced();
  const refused = begin()!;
  refused.publishes(undefined, to)!.ended("refused", "store_full", message);
  refused.answered(503, "store_full", demo);
  begin()!.answered(401, "unknown_api_key", { projectId: "" });
  begin()!.disconnected({ projectId: "" });
  expect(spans().map(({ attributes, status }) => [attributes["error.type"], status.code])).toEqual([
    ["store_full", SpanStatusCode.ERROR],
    ["store_full", SpanStatusCode.ERROR],
    ["unknown_api_key", SpanStatusCode.UNSET],
    ["client_disconnected", SpanStatusCode.UNSET],
  ]);
});

test("a span's name contains nothing that the client chose", () => {
  const { tracing, spans } = traced();
  const head = { traceparent: "", path: "/x/y", isRoute: false };
  for (const method of ["GET", "EVIL"])
    tracing.begin({ ...head, method })!.answered(404, "not_found", { projectId: "" });
  expect(spans().map(({ name, attributes }) => [name, attributes["http.request.method"]])).toEqual([
    ["GET", "GET"],
    ["HTTP", "_OTHER"],
  ]);
});

test("requests without a project do not use up the limit of traced requests", () => {
  const { begin, spans } = traced();
  const unknown = Array.from({ length: 500 }, () => begin()!);
  for (const request of unknown) request.answered(401, "unknown_api_key", { projectId: "" });
  expect(spans()).toHaveLength(10);
  const known = Array.from({ length: 150 }, () => begin()!);
  const sent = known.map((request) => request.publishes(undefined, to));
  for (const request of known) request.answered(200, undefined, demo);
  expect(sent.filter((message) => message !== undefined)).toHaveLength(100);
  expect(spans()).toHaveLength(110);
  expect(begin()).toBeUndefined();
});

test("the span of a request starts when the request arrives", async () => {
  const { begin, spans } = traced();
  const beforeMs = Date.now();
  const request = begin()!;
  await delay(100);
  request.answered(200, undefined, demo);
  const [{ startTime, duration }] = spans() as [ReadableSpan];
  expect(hrTimeToMilliseconds(startTime) - beforeMs).toBeLessThan(90);
  expect(hrTimeToMilliseconds(duration)).toBeGreaterThan(95);
});
