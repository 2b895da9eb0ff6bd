import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { serveEffects } from "../../src/app/effects.ts";
import { runSink } from "../../src/app/sink.ts";
import type { SinkTarget } from "../../src/readers/sinks/sink-target.ts";
import { freePort } from "../kit/free-port.ts";
import { startTestGateway, type TestGateway, type TestProject } from "../kit/gateway.ts";
import { silent, temporaryFolder } from "../kit/processes.ts";
import { runCommand } from "../kit/run-command.ts";
import { testProgram } from "../kit/test-program.ts";
import { dashboardQueries } from "./dashboard-kit.ts";
import { settingsOf } from "./files-kit.ts";
import { fetchMsMax, readRules, startPrometheus } from "./prometheus-kit.ts";

const ackTimeoutMs = 300;
const batchMs = 200;
// This gateway has no TLS, so this series does not exist.
const onlyWithTls = "penstock_tls_certificate_expiry_seconds";

function filledIn(expr: string): string {
  return expr
    .replaceAll("$__rate_interval", "5s")
    .replaceAll("$__range", "1m")
    .replaceAll("$job", ".+")
    .replaceAll("$instance", ".+");
}

function selectorsOf(expr: string): string[] {
  const found =
    expr.match(/\b(?:up|(?:penstock|process)_\w+|job\w*:[\w:]+)\b(?:\{[^}]*\})?/g) ?? [];
  return found.filter((selector) => !selector.startsWith(onlyWithTls));
}

async function applyRules(gateway: TestGateway, { id }: TestProject): Promise<void> {
  const file = path.join(temporaryFolder(), "rules.yaml");
  const rules = "rules: [{ name: seen, mode: observe, drop: true }]";
  writeFileSync(file, `${rules}\nschemas: [{ event: hello, version: 1, properties: {} }]\n`);
  const env = { PENSTOCK_NATS_URL: gateway.nats.url };
  expect((await runCommand(env, ["rules", "apply", id, file])).fault).toBeUndefined();
}

function startLoad(gateway: TestGateway, { key }: TestProject): void {
  const event = { event: "hello", distinct_id: "u", properties: { text: "x".repeat(500) } };
  const batch = Array.from({ length: 50 }, () => event);
  const bodies: [string, unknown][] = [
    ["/capture/", { api_key: key, ...event }],
    ["/batch/", { api_key: key, batch }],
    ["/batch/", { api_key: key, batch, historical_migration: true }],
    ["/batch/", { api_key: key, batch: [event, { ...event, properties: 1 }, { event: "" }] }],
    ["/capture/", { api_key: "phc_unknown", ...event }],
    ["/elsewhere", {}],
  ];
  let stopped = false;
  const clients = Array.from({ length: 4 }, async () => {
    while (!stopped)
      for (const [path, body] of bodies) await gateway.post(path, body).catch(() => {});
  });
  onTestFinished(async () => {
    stopped = true;
    gateway.nats.thaw();
    await Promise.all(clients);
  });
}

async function startEffects(gateway: TestGateway): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-effects-"));
  const config = settingsOf({
    PENSTOCK_NATS_URL: gateway.nats.url,
    PENSTOCK_EFFECTS_URL: `sqlite:${folder}/effects.sqlite`,
    PENSTOCK_EFFECTS_PORT: "0",
  });
  const ended = new AbortController();
  const { promise, resolve } = Promise.withResolvers<number>();
  const info = (fields: object): void => {
    if ("effectsPort" in fields) resolve(fields.effectsPort as number);
  };
  const log = { ...silent, info } as never;
  const options = {
    host: process,
    log,
    signal: ended.signal,
    acceptExpired: false,
    isChild: false,
  };
  const served = serveEffects(config, options);
  onTestFinished(async () => {
    ended.abort();
    await served;
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  return `127.0.0.1:${await promise}`;
}

async function startSink(gateway: TestGateway): Promise<string> {
  const port = await freePort();
  const config = settingsOf({
    PENSTOCK_NATS_URL: gateway.nats.url,
    PENSTOCK_SINK_PORT: String(port),
    PENSTOCK_SINK_BATCH_AGE_MS: "10",
    PENSTOCK_SINK_BATCH_EVENTS: "1",
    PENSTOCK_LOG_LEVEL: "fatal",
  });
  const ended = new AbortController();
  const target: SinkTarget = {
    shown: "nowhere",
    open: async () => [],
    async write({ events }) {
      await delay(batchMs);
      return { written: events.length, duplicates: 0, refused: 0 };
    },
    close: async () => {},
  };
  const context = { host: process, stop: ended.signal };
  const run = { target, projects: undefined, lanes: undefined, acceptExpired: false };
  const served = runSink(config, context, run);
  onTestFinished(async () => {
    ended.abort();
    await served;
  });
  return `127.0.0.1:${port}`;
}

test("a real Prometheus answers every query of dashboard, rules and alerts", {
  timeout: fetchMsMax,
}, async () => {
  await testProgram("prometheus");
  const unused = {
    PENSTOCK_UPSTREAM_URL: "http://127.0.0.1:1",
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:1/v1/traces",
    OTEL_TRACES_SAMPLER_ARG: "0",
  };
  const env = { PENSTOCK_ACK_TIMEOUT_MS: String(ackTimeoutMs), ...unused };
  const gateway = await startTestGateway({ env });
  onTestFinished(() => gateway.stop());
  const project = await gateway.project();
  await applyRules(gateway, project);
  startLoad(gateway, project);
  const others = { effects: await startEffects(gateway), sink: await startSink(gateway) };
  const prometheus = await startPrometheus(gateway.adminUrl, others);
  const numbers = async (expr: string) =>
    (await prometheus.query(expr)).map(({ value }) => Number(value[1])).filter(Number.isFinite);
  const within = { timeout: 30_000, interval: 200 };

  const scrapes = "count_over_time(penstock_requests_total{route='batch',status='200'}[1m])";
  await expect.poll(() => numbers(`${scrapes} >= 3`), within).toHaveLength(1);
  gateway.nats.freeze();
  await expect.poll(() => numbers("penstock_frame_retries_total > 0"), within).toHaveLength(1);
  gateway.nats.thaw();

  const queries = dashboardQueries().filter(({ expr }) => !expr.includes(onlyWithTls));
  expect(queries.length).toBeGreaterThan(60);
  for (const { title, expr } of queries) {
    await expect
      .poll(() => numbers(filledIn(expr)), { ...within, message: `${title}: ${expr}` })
      .not.toEqual([]);
  }
  const retries = 'sum(increase(penstock_acks_failed_total{cause="timeout"}[1m]))';
  await expect.poll(() => numbers(`${retries} > 0`), within).toHaveLength(1);

  for (const { record, alert, expr } of readRules()) {
    const asked = record === undefined ? [] : [record];
    for (const selector of [...asked, ...selectorsOf(expr)]) {
      const message = `${record ?? alert}: ${selector}`;
      await expect
        .poll(() => numbers(`last_over_time(${selector}[1m])`), { ...within, message })
        .not.toEqual([]);
    }
  }
  const rules = await prometheus.rules();
  expect(rules).toHaveLength(readRules().length);
  expect(rules.filter(({ health }) => health !== "ok")).toEqual([]);
});
