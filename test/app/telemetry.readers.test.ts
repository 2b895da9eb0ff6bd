import { expect, onTestFinished, test } from "vitest";
import { startTestGateway } from "../kit/gateway.ts";
import { startOtlpReceiver } from "../kit/otlp-receiver.ts";
import { startUpstream } from "../kit/posthog-upstream.ts";
import { ended, penstockWith, temporaryFolder } from "../kit/processes.ts";

const within = { timeout: 40_000 };

async function rig() {
  const receiver = await startOtlpReceiver();
  const gateway = await startTestGateway();
  onTestFinished(async () => {
    await gateway.stop();
    receiver.close();
  });
  const { id, key } = await gateway.project();
  const send = async () =>
    (await gateway.post("/capture/", { api_key: key, event: "e", distinct_id: "u" })).status;
  const env = {
    PENSTOCK_NATS_URL: gateway.nats.url,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: "x-token=abc",
    OTEL_METRIC_EXPORT_INTERVAL: "200",
  };
  const sumOf = (name: string) =>
    receiver.metrics
      .findLast((metric) => metric.name === name)
      ?.points.reduce((sum, { value }) => sum + value, 0);
  const serviceOf = (name: string) =>
    receiver.metrics.findLast((metric) => metric.name === name)?.resource["service.name"];
  return { receiver, id, key, send, env, sumOf, serviceOf };
}

test("`penstock effects` exports its metrics over OTLP, and the last of them on SIGTERM", async () => {
  const { receiver, send, env, sumOf, serviceOf } = await rig();
  expect(await send()).toBe(200);
  const folder = ["--data-dir", temporaryFolder(), "--effects-port", "0"];
  const effects = penstockWith(env, "effects", ...folder);
  await expect.poll(() => sumOf("penstock_effects_events_total"), within).toBe(1);
  expect(serviceOf("penstock_effects_events_total")).toBe("penstock-effects");
  expect(receiver.headers.at(-1)).toMatchObject({ "x-token": "abc" });
  const exports = receiver.headers.length;
  effects.kill("SIGTERM");
  expect(await ended(effects)).toBe(0);
  expect(receiver.headers.length).toBeGreaterThan(exports);
});

test("`penstock sink` exports its metrics over OTLP, and copies events while no receiver answers", async () => {
  const { receiver, id, key, send, env, sumOf, serviceOf } = await rig();
  const upstream = await startUpstream();
  onTestFinished(() => upstream.stop());
  expect(await send()).toBe(200);
  const sink = penstockWith(
    env,
    "sink",
    "posthog",
    upstream.url,
    "--state",
    temporaryFolder(),
    "--key",
    `${id}=${key}`,
    "--sink-port",
    "0",
    "--data-dir",
    temporaryFolder(),
  );
  await expect.poll(() => sumOf("penstock_sink_events_total"), within).toBe(1);
  expect(serviceOf("penstock_sink_events_total")).toBe("penstock-sink");
  expect(upstream.events()).toHaveLength(1);
  receiver.close();
  expect(await send()).toBe(200);
  await expect.poll(() => upstream.events().length, within).toBe(2);
  await expect.poll(() => sink.said.err, within).toContain("OpenTelemetry export failed");
  sink.kill("SIGTERM");
  expect(await ended(sink)).toBe(0);
});
