import { writeFileSync } from "node:fs";
import path from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { credsAuthenticator } from "@nats-io/nats-core";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { commandLine } from "../../src/app/command-line.ts";
import { SqliteStore } from "../../src/readers/effects/store/sqlite/store.ts";
import { OutboxPublisher } from "../../src/readers/effects/writer/outbox-publisher.ts";
import { blocksOf } from "../docs/docs-kit.ts";
import { createAuthority } from "../kit/certificates.ts";
import { commandWorld } from "../kit/command-context.ts";
import { operatorMode } from "../kit/nats-operator.ts";
import { startNatsServer, type TestNatsServer } from "../kit/nats-server.ts";
import { mutualTls } from "../kit/nats-tls.ts";
import { ended, penstockWith, silent, temporaryFolder } from "../kit/processes.ts";
import { makeStreams, storeFrames } from "../kit/stored-events.ts";
import { commitOf } from "../readers/effects/store/row-kit.ts";

const slow = { timeout: 30_000 };
const uuid = "0190c8b2-7f3a-7c11-9d2e-3f4a5b6c7d8e";

async function serverWith(extraConfig: string): Promise<TestNatsServer> {
  const env = { GATEWAY_PASSWORD: "gate-secret", EFFECTS_PASSWORD: "effects-secret" };
  const server = await startNatsServer({ extraConfig, env });
  onTestFinished(() => server.remove());
  return server;
}

async function storeOne(connection: NatsConnection): Promise<void> {
  onTestFinished(() => connection.close());
  await makeStreams(connection);
  const event = { uuid, distinctId: "ada", receivedAtMs: Date.now() };
  const frame = { lane: "live", projectId: "shop", messageId: "m1", events: [event] } as const;
  await storeFrames(connection, [frame]);
}

async function appliedBy(env: Record<string, string>): Promise<string> {
  const effects = penstockWith(env, "effects");
  await expect.poll(() => effects.said.err, slow).toContain("effects applying events");
  const port = /"effectsPort":(\d+)/.exec(effects.said.err)?.[1] ?? "";
  const url = `http://127.0.0.1:${port}/projects/shop/persons?distinct_id=ada`;
  const status = async () => (await fetch(`${url}&wait_for=PENSTOCK_LIVE_0:1`)).status;
  await expect.poll(status, slow).toBe(200);
  effects.kill("SIGTERM");
  expect(await ended(effects)).toBe(0);
  return effects.said.err;
}

test("penstock effects works with the NATS permissions in the guide", async () => {
  const [block] = blocksOf("docs/guides/running-effects.md").filter(
    ({ language }) => language === "conf",
  );
  const server = await serverWith(block?.text ?? "");
  const as = (user: string, pass: string) => connect({ servers: server.url, user, pass });
  await storeOne(await as("gateway", "gate-secret"));
  const file = path.join(temporaryFolder(), "effects.sqlite");
  const env = {
    PENSTOCK_NATS_URL: server.url.replace("//", "//effects:effects-secret@"),
    PENSTOCK_EFFECTS_URL: `sqlite:${file}`,
  };
  expect(await appliedBy(env)).not.toContain("Permissions Violation");
  const run = async (...args: string[]) => {
    const { context } = commandWorld(env);
    await commandLine(context).parseAsync(args, { from: "user" });
  };
  const readers = [
    ["effects", "status"],
    ["effects", "verify"],
    ["usage", "shop", "--export"],
  ];
  await Promise.all(readers.map((args) => run(...args)));
  await run("effects", "rebuild");

  const own = await as("effects", "effects-secret");
  onTestFinished(() => own.close());
  const store = new SqliteStore({ file: path.join(temporaryFolder(), "effects.sqlite") });
  await store.open();
  onTestFinished(() => store.close());
  const spike = { messageId: "spike/1", subject: "penstock.spike.shop", json: "{}" };
  await store.commit(commitOf(0, { outbox: [spike] }));
  const publisher = new OutboxPublisher({ connection: own, store, log: silent });
  await expect.poll(() => store.outbox(10, 0)).toEqual([]);
  await publisher.close();
  expect(server.log()).not.toContain("Violation");

  const manager = await jetstreamManager(own, { checkAPI: false });
  await expect(manager.streams.delete("PENSTOCK_LIVE_0")).rejects.toThrow("Permissions Violation");
  await expect(manager.streams.purge("PENSTOCK_LIVE_0")).rejects.toThrow("Permissions Violation");
  await expect(own.request("penstock.live.0.shop", "{}")).rejects.toThrow("Permissions Violation");
});

test("penstock effects presents its certificate to a NATS server that requires one", async () => {
  const authority = await createAuthority();
  const [ofServer, own] = await Promise.all([authority.server(), authority.client()]);
  const server = await serverWith(mutualTls(authority, ofServer));
  const files = { caFile: authority.caFile, certFile: own.certFile, keyFile: own.keyFile };
  await storeOne(await connect({ servers: server.url, tls: files }));
  await appliedBy({
    PENSTOCK_NATS_URL: `tls://127.0.0.1:${server.port}`,
    PENSTOCK_NATS_CA: authority.caFile,
    PENSTOCK_NATS_CERT: own.certFile,
    PENSTOCK_NATS_KEY: own.keyFile,
    PENSTOCK_EFFECTS_URL: newDatabase(),
  });
});

test("penstock effects accepts a NATS credentials file", async () => {
  const { config, creds } = await operatorMode();
  const server = await serverWith(config);
  await storeOne(await connect({ servers: server.url, authenticator: credsAuthenticator(creds) }));
  const file = path.join(temporaryFolder(), "user.creds");
  writeFileSync(file, creds);
  const env = { PENSTOCK_NATS_URL: server.url, PENSTOCK_NATS_CREDS: file };
  await appliedBy({ ...env, PENSTOCK_EFFECTS_URL: newDatabase() });
});

test("penstock effects accepts a NATS token", async () => {
  const server = await serverWith('authorization { token: "a-secret" }');
  await storeOne(await connect({ servers: server.url, token: "a-secret" }));
  const env = { PENSTOCK_NATS_URL: server.url, PENSTOCK_NATS_TOKEN: "a-secret" };
  await appliedBy({ ...env, PENSTOCK_EFFECTS_URL: newDatabase() });
});

function newDatabase(): string {
  return `sqlite:${path.join(temporaryFolder(), "effects.sqlite")}`;
}
