import { expect, onTestFinished, test } from "vitest";
import { startOtlpReceiver } from "../kit/otlp-receiver.ts";
import { ended, penstockWith, temporaryFolder } from "../kit/processes.ts";
import { upOn } from "../kit/up-process.ts";

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

test("the workers and the effects process export telemetry", async () => {
  const receiver = await startOtlpReceiver();
  onTestFinished(() => receiver.close());
  const { child, url } = await upOn(
    temporaryFolder(),
    ...["--workers", "2", "--otel-exporter-otlp-endpoint", receiver.url],
    ...["--otel-traces-sampler", "parentbased_always_off"],
    ...["--otel-metric-export-interval", "200"],
  );
  const body = JSON.stringify({ api_key: "phc_demo", event: "e", distinct_id: "u" });
  const answer = await fetch(`${url}/capture/`, { method: "POST", body, headers: { traceparent } });
  expect(answer.status).toBe(200);
  const latest = (name: string) => receiver.metrics.findLast((metric) => metric.name === name);
  const within = { timeout: 40_000 };
  const applied = () =>
    latest("penstock_effects_events_total")?.points.some(({ value }) => value === 1);
  await expect.poll(applied, within).toBe(true);
  expect(latest("penstock_effects_events_total")!.resource["service.name"]).toBe(
    "penstock-effects",
  );
  child.kill("SIGTERM");
  expect(await ended(child)).toBe(0);
  const { resource, points } = latest("penstock_requests_total")!;
  expect(resource["service.name"]).toBe("penstock");
  const answered = points.filter(({ attributes }) => attributes["route"] === "capture");
  expect(answered.reduce((sum, { value }) => sum + value, 0)).toBe(1);
  expect(receiver.spans.map(({ name }) => name).sort()).toEqual([
    "POST /capture/",
    "publish PENSTOCK_LIVE_0",
  ]);
});

test.each([
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4317", "must be a URL such as http://127.0.0.1:4318"],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 'must be one of http/protobuf (got "grpc")'],
  ["OTEL_TRACES_SAMPLER", "sometimes", "must be one of always_on, always_off, traceidratio, "],
  ["OTEL_TRACES_SAMPLER_ARG", "1.5", 'must be a number from 0 to 1 (got "1.5")'],
  ["OTEL_EXPORTER_OTLP_HEADERS", "secret", "must be pairs such as key=value,other=value"],
])("the invalid setting %s=%s makes the start fail", async (variable, value, message) => {
  const process = penstockWith({ [variable]: value }, "serve");
  expect(await ended(process)).toBe(2);
  expect(process.said.err).toContain(`${variable}: ${message}`);
  expect(process.said.err).not.toContain("secret");
});
