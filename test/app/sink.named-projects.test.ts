import { existsSync } from "node:fs";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { addProject } from "../../src/gateway/projects/registry/commands.ts";
import { blocksOf } from "../docs/docs-kit.ts";
import { startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import { startUpstream } from "../kit/posthog-upstream.ts";
import { ended, penstock, temporaryFolder } from "../kit/processes.ts";
import { makeStreams, storeFrames } from "../kit/stored-events.ts";

const slow = { timeout: 30_000 };
const uuid = "0190c8b2-7f3a-7c11-9d2e-3f4a5b6c7d8e";

async function gatewayOf(server: TestNatsServer, as: { user?: string; pass?: string } = {}) {
  onTestFinished(() => server.remove());
  const connection = await connect({ servers: server.url, ...as });
  onTestFinished(() => connection.close());
  await makeStreams(connection);
  const events = [{ uuid, distinctId: "ada", receivedAtMs: Date.now() }];
  return {
    store: async () =>
      await storeFrames(connection, [{ lane: "live", projectId: "demo", messageId: "m1", events }]),
    register: async (id: string) => {
      await addProject(connection, { prefix: "penstock", replicas: 1, id, key: `phc_${id}` });
    },
  };
}

async function sinks(natsUrl: string) {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.stop());
  const state = path.join(temporaryFolder(), "state");
  const where = ["--state", state, "--nats-url", natsUrl, "--sink-port", "0"];
  return {
    state,
    start: (...more: string[]) => penstock("sink", "posthog", upstream.url, ...where, ...more),
    arrived: (key: string) => upstream.events(key).map(({ distinct_id }) => distinct_id),
  };
}

test("a sink with a misspelt project fails before it stores a position", async () => {
  const server = await startNatsServer();
  const { store, register } = await gatewayOf(server);
  await register("demo");
  await store();
  const { state, start, arrived } = await sinks(server.url);
  for (const slip of [
    ["--projects", "dmeo"],
    ["--key", "dmeo=phc_of_the_shop"],
    ["--projects", "demo,dmeo", "--key", "demo=phc_of_the_shop"],
  ]) {
    const sink = start(...slip);
    expect(await ended(sink)).toBe(2);
    const flag = slip[0];
    expect(sink.said.err).toContain(
      `sink: ${flag}: there is no project dmeo: did you mean demo? the only project is demo`,
    );
    expect(sink.said.err).not.toContain("sink writing events");
    expect(existsSync(state)).toBe(false);
  }
  start("--projects", "demo", "--key", "demo=phc_of_the_shop");
  await expect.poll(() => arrived("phc_of_the_shop"), slow).toEqual(["ada"]);
  expect(arrived("phc_demo")).toEqual([]);
});

test("a sink accepts a removed project with events in the streams", async () => {
  const server = await startNatsServer();
  const { store, register } = await gatewayOf(server);
  await register("shop");
  await store();
  const { start, arrived } = await sinks(server.url);
  start("--projects", "demo", "--key", "demo=phc_of_the_shop");
  await expect.poll(() => arrived("phc_of_the_shop"), slow).toEqual(["ada"]);
});

test("a sink with --projects waits while the registry has no projects", async () => {
  const server = await startNatsServer();
  const { store, register } = await gatewayOf(server);
  const { state, start, arrived } = await sinks(server.url);
  const sink = start("--projects", "demo");
  await expect.poll(() => sink.said.err, slow).toContain("project registry: waiting");
  const port = /"sinkPort":(\d+)/.exec(sink.said.err)?.[1];
  const ready = await fetch(`http://127.0.0.1:${port}/readyz`);
  expect(await ready.text()).toContain("waiting for the registry: it has no projects yet");
  expect(existsSync(state)).toBe(false);
  const other = start("--projects", "dmeo");
  await expect.poll(() => other.said.err, slow).toContain("project registry: waiting");
  other.kill("SIGTERM");
  expect(await ended(other)).toBe(0);
  await register("demo");
  await store();
  await expect.poll(() => arrived("phc_demo"), slow).toEqual(["ada"]);
});

test("a sink that may not read the registry accepts unchecked project names", async () => {
  const [block] = blocksOf("docs/guides/running-effects.md").filter(
    ({ language }) => language === "conf",
  );
  const env = { GATEWAY_PASSWORD: "gate-secret", EFFECTS_PASSWORD: "effects-secret" };
  const server = await startNatsServer({ extraConfig: block?.text ?? "", env });
  const { store, register } = await gatewayOf(server, { user: "gateway", pass: "gate-secret" });
  await register("demo");
  await store();
  const { start, arrived } = await sinks(server.url.replace("//", "//effects:effects-secret@"));
  const sink = start("--projects", "demo", "--key", "demo=phc_of_the_shop");
  await expect.poll(() => arrived("phc_of_the_shop"), slow).toEqual(["ada"]);
  expect(sink.said.err).toContain("the named projects are not checked");
});
