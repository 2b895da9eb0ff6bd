import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { addProject } from "../../src/gateway/projects/registry/commands.ts";
import { gatewayForFile } from "../kit/for-file.ts";
import { startNatsServer } from "../kit/nats-server.ts";
import { startUpstream } from "../kit/posthog-upstream.ts";
import { ended, penstock, penstockWith } from "../kit/processes.ts";
import { makeStreams, storeFrames } from "../kit/stored-events.ts";
import { blocksOf } from "./docs-kit.ts";

const gateway = await gatewayForFile();
const upstream = await gatewayForFile();
const slow = { timeout: 30_000 };

function newFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-sink-posthog-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function started(to: string, ...more: string[]) {
  const nats = ["--nats-url", gateway.nats.url, "--sink-port", "0"];
  return penstock("sink", "posthog", to, ...nats, ...more);
}

test("the guide's PostHog sink delivers events with uuid and time", async () => {
  const folder = newFolder();
  const [here, there] = [await gateway.project(), await upstream.project()];
  const sink = started(upstream.url, "--state", folder, "--key", `${here.id}=${there.key}`);
  const event = { event: "signed up", distinct_id: "user-1", properties: { plan: "pro" } };
  const live = { ...event, $set: { name: "Ada" }, timestamp: "2026-01-02T03:04:05.678Z" };
  const old = { ...event, timestamp: "2019-01-02T03:04:05.678Z" };
  const headers = { "x-forwarded-for": "10.1.2.3" };
  await gateway.post("/capture/", { api_key: here.key, ...live }, headers);
  const history = { api_key: here.key, historical_migration: true, batch: [old] };
  await gateway.post("/batch/", history);
  await expect.poll(() => upstream.events(there), slow).toHaveLength(1);
  await expect.poll(() => upstream.events(there, "historical"), slow).toHaveLength(1);
  for (const lane of ["live", "historical"] as const) {
    const [sent] = await gateway.events(here, lane);
    const [found] = await upstream.events(there, lane);
    const { uuid, timestamp, event, distinct_id, $set, historical, properties } = sent!;
    expect(found).toMatchObject({ uuid, timestamp, event, distinct_id, historical });
    expect(found!["$set"]).toEqual($set);
    expect(found!.properties).toEqual({ ...properties, $ip: sent!["ip"] });
  }

  const port = /"sinkPort":(\d+)/.exec(sink.said.err)?.[1];
  const shown = async (page: string) =>
    await (await fetch(`http://127.0.0.1:${port}${page}`)).text();
  expect(await shown("/readyz")).toBe('{"status":"ready"}\n');
  const metrics = () => shown("/metrics");
  await expect.poll(metrics, slow).toContain('penstock_sink_events_total{outcome="written"} 2');
  expect(await metrics()).toMatch(/penstock_sink_requests_total\{outcome="taken"\} [12]/);
  sink.kill("SIGTERM");
  expect(await ended(sink)).toBe(0);
  expect(sink.said.err).not.toContain(there.key);
});

test("the guide's PostHog sink reads its key from the registry", async () => {
  const folder = newFolder();
  const project = await gateway.project();
  const sink = started(upstream.url, "--state", folder, "--projects", project.id);
  await gateway.post("/capture/", { api_key: project.key, event: "e", distinct_id: "d" });
  const said = () => sink.said.err;
  await expect.poll(said, slow).toMatch(/"reason":"401: [^"]*","msg":"sink upstream refuses/);
  const port = /"sinkPort":(\d+)/.exec(sink.said.err)?.[1];
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
  expect(ready.status).toBe(503);
  expect(await ready.text()).toContain(`${project.id}: 401: `);
  sink.kill("SIGTERM");
  expect(await ended(sink)).toBe(0);
  const aside = penstock("sink", "posthog", "--state", folder, "--aside");
  expect(await ended(aside)).toBe(0);
  expect(aside.said.out).toBe("");
  expect(said()).not.toContain(project.key);
});

test("the guide's command prints the events that the PostHog sink has rejected", async () => {
  const folder = newFolder();
  const project = await gateway.project();
  const refusing = await startUpstream();
  onTestFinished(() => refusing.stop());
  refusing.play = ({ body }) =>
    body.batch.some(({ event }) => event === "bad") ? { status: 400, body: "too odd" } : undefined;
  const sink = started(refusing.url, "--state", folder, "--projects", project.id);
  const batch = ["good", "bad"].map((event) => ({ event, distinct_id: "d" }));
  await gateway.post("/batch/", { api_key: project.key, batch });
  await expect
    .poll(() => refusing.events(project.key).map(({ event }) => event), slow)
    .toEqual(["good"]);
  sink.kill("SIGTERM");
  expect(await ended(sink)).toBe(0);
  const aside = penstock("sink", "posthog", "--state", folder, "--aside");
  expect(await ended(aside)).toBe(0);
  const [line, ...rest] = aside.said.out.trim().split("\n");
  expect(rest).toEqual([]);
  const printed = JSON.parse(line!) as Record<string, string>;
  expect(printed["detail"]).toBe("400: too odd");
  expect(JSON.parse(printed["record"]!)).toMatchObject({ event: "bad", distinct_id: "d" });
});

test("the PostHog sink works with the NATS permissions of the guide", async () => {
  const [block] = blocksOf("docs/guides/sink-posthog.md").filter(
    ({ language }) => language === "conf",
  );
  const env = { GATEWAY_PASSWORD: "gate-secret", SINK_PASSWORD: "sink-secret" };
  const server = await startNatsServer({ extraConfig: block?.text ?? "", env });
  onTestFinished(() => server.remove());
  const user = (name: string, pass: string) => ({ servers: server.url, user: name, pass });
  const connection = await connect(user("gateway", "gate-secret"));
  onTestFinished(() => connection.close());
  await makeStreams(connection);
  await addProject(connection, { prefix: "penstock", replicas: 1, id: "shop", key: "phc_shop" });
  const frames = ["gone", "first", "deleted", "last"].map((distinctId, nth) => {
    const uuid = `0190c8b2-7f3a-7c11-9d2e-00000000000${nth}`;
    const events = [{ uuid, distinctId, receivedAtMs: 1 }];
    return { lane: "live", projectId: "shop", messageId: distinctId, events } as const;
  });
  await storeFrames(connection, frames);
  const { streams } = await jetstreamManager(connection);
  await streams.purge("PENSTOCK_LIVE_0", { seq: 2 });
  await streams.deleteMessage("PENSTOCK_LIVE_0", 3);
  const taking = await startUpstream();
  onTestFinished(() => taking.stop());
  const nats = server.url.replace("//", "//sink:sink-secret@");
  const sink = penstockWith(
    { PENSTOCK_NATS_URL: nats, PENSTOCK_SINK_TO: taking.url },
    "sink",
    "posthog",
    "--state",
    newFolder(),
    "--sink-port",
    "0",
    "--projects",
    "shop",
  );
  const sent = () => taking.events("phc_shop").map(({ distinct_id }) => distinct_id);
  await expect.poll(sent, slow).toEqual(["first", "last"]);
  sink.kill("SIGTERM");
  expect(await ended(sink)).toBe(0);
  expect(sink.said.err).not.toContain("Permissions Violation");
});
