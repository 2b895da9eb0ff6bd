import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { openBucket } from "../../../src/gateway/projects/registry/bucket.ts";
import { addProject } from "../../../src/gateway/projects/registry/commands.ts";
import { until } from "../../kit/gateway.ts";
import { startHub } from "../../kit/nats-layouts.ts";
import { type DoctorRun, doctorAt, expectOne } from "./doctor-kit.ts";

const hub = await startHub();
const leaf = await hub.leaf("leaf-1");
afterAll(async () => {
  for (const server of [leaf, hub.server]) await server.remove();
});

const place = { prefix: "penstock", replicas: 1 };
const stream = "KV_penstock_projects";

async function look(): Promise<DoctorRun> {
  const run = await doctorAt(leaf, {
    PENSTOCK_NATS_TOKEN: leaf.token ?? "",
    PENSTOCK_HUB_DOMAIN: "hub",
  });
  expect(run.out).not.toContain("project add");
  return run;
}

async function atLeaf<T>(action: (connection: NatsConnection) => Promise<T>): Promise<T> {
  const connection = await connect({ servers: leaf.url, token: leaf.token ?? "" });
  try {
    return await action(connection);
  } finally {
    await connection.close();
  }
}

async function removed(connection: NatsConnection): Promise<void> {
  await (await jetstreamManager(connection)).streams.delete(stream);
}

const openMirror = () =>
  atLeaf((connection) => openBucket(connection, { ...place, hubDomain: "hub" }));
const isOpened = () =>
  openMirror().then(
    () => true,
    () => false,
  );

test("doctor reports each state of a leaf's registry", async () => {
  await until(async () => (await look()).of("hub")[0]?.found.includes("has no registry") === true);
  const fresh = await look();
  expect(expectOne(fresh, "hub", "warn").fix).toContain("penstock gather");
  expect(expectOne(fresh, "registry", "ok").found).toContain("the gateway creates it");

  await hub.gather();
  expect(expectOne(await look(), "hub", "ok").found).toBe("domain hub responds");
  await hub.withClient((connection) =>
    addProject(connection, { ...place, id: "shop", key: "phc_shop" }),
  );
  const { mirror } = await atLeaf(async (connection) => {
    await new Kvm(jetstream(connection)).create("penstock_projects", {
      history: 1,
      mirror: { name: stream, external: { api: "$JS.hub.API", deliver: "" } },
    });
    return (await (await jetstreamManager(connection)).streams.info(stream)).config;
  });
  expect(mirror).toBeDefined();
  expect(expectOne(await look(), "registry", "warn").found).toContain(
    "has not copied all projects from the hub yet",
  );

  await until(isOpened);
  const filled = await look();
  expect(expectOne(filled, "registry", "ok").found).toBe("1 project");
  expectOne(filled, "hub", "ok");

  await hub.withClient(removed);
  await hub.gather();
  expect(expectOne(await look(), "hub", "warn").fix).toContain(`nats stream rm ${stream}`);

  await atLeaf(removed);
  await until(isOpened);
  expect(expectOne(await look(), "registry", "warn").fix).toContain("add projects at the hub");

  await atLeaf(removed);
  await atLeaf((connection) => addProject(connection, { ...place, id: "own", key: "phc_own" }));
  const own = await look();
  expect(own.exitCode).toBe(1);
  expect(expectOne(own, "registry", "fail").fix).toContain(`nats stream rm ${stream}`);
  expectOne(await doctorAt(leaf, { PENSTOCK_NATS_TOKEN: leaf.token ?? "" }), "registry", "ok");

  await hub.server.kill();
  const away = await look();
  expect(expectOne(away, "hub", "warn").found).toMatch(
    /^domain hub does not respond, and a gateway here waits for it: /,
  );
});
