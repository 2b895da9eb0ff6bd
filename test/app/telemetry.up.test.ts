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
    "--workers",
    "2",
    "--otel-exporter-otlp-endpoint",
    receiver.url,
    "--otel-traces-sampler",
    "parentbased_always_off",
    "--otel-metric-export-interval",
    "200",
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

const invalid = [
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4317", "must be a URL such as http://127.0.0.1:4318"],
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 'must be one of http/protobuf (got "grpc")'],
  ["OTEL_TRACES_SAMPLER", "sometimes", "must be one of always_on, always_off, traceidratio, "],
  ["OTEL_TRACES_SAMPLER_ARG", "1.5", 'must be a number from 0 to 1 (got "1.5")'],
  ["OTEL_EXPORTER_OTLP_HEADERS", "secret", "must be pairs such as key=value,other=value"],
] as const;

test("invalid variables of OpenTelemetry are ignored: exporting processes log a warning, and other commands run", async () => {
  const env = Object.fromEntries(invalid.map(([variable, value]) => [variable, value]));
  const folder = temporaryFolder();
  const up = penstockWith(
    env,
    "up",
    "--data-dir",
    folder,
    "--port",
    "0",
    "--admin-port",
    "0",
    "--stream-bytes-max",
    "67108864",
  );
  await expect.poll(() => up.said.out, { timeout: 40_000 }).toContain("Penstock is up");
  const logged = up.said.err.split("\n").filter((line) => line.includes('"penstock"'));
  for (const [variable, , message] of invalid) {
    const lines = logged.filter((line) => line.includes(`${variable}: `));
    expect(lines.length, variable).toBeGreaterThan(0);
    expect(JSON.parse(lines[0]!)).toMatchObject({
      msg: "OpenTelemetry setting ignored",
      reason: expect.stringContaining(`${variable}: ${message}`),
    });
  }
  expect(up.said.err).not.toContain("secret");
  const list = penstockWith(env, "project", "list", "--data-dir", folder);
  expect([await ended(list), list.said.err]).toEqual([0, ""]);
  const doctor = penstockWith(env, "doctor", "--data-dir", folder);
  await ended(doctor);
  expect(doctor.said.out).toContain("OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1");
  up.kill("SIGTERM");
  expect(await ended(up)).toBe(0);
});

test("an invalid flag of OpenTelemetry makes the start fail", async () => {
  const process = penstockWith({}, "serve", "--otel-exporter-otlp-protocol", "grpc");
  expect(await ended(process)).toBe(2);
  expect(process.said.err).toContain("--otel-exporter-otlp-protocol: must be one of http/protobuf");
});
