import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { addProject } from "../../../src/gateway/projects/registry/commands.ts";
import { DailySalts } from "../../../src/gateway/projects/rules/daily-salts.ts";
import { applyRules } from "../../../src/gateway/projects/rules/versions.ts";
import { doctorAt, expectOne, makeStreams, serverWith } from "./doctor-kit.ts";

test("doctor reports rules that gateways cannot use, and shows no text of them", async () => {
  const server = await serverWith();
  await makeStreams(server);
  const connection = await connect({ servers: server.url });
  onTestFinished(() => connection.close());
  const at = { prefix: "penstock", replicas: 1, id: "shop" };
  await addProject(connection, at);
  expect((await doctorAt(server)).of("rules")).toEqual([]);
  const text = "rules: [{ name: secret-plan, drop: true }]\n";
  await applyRules(connection, { ...at, text, author: "me@here" });
  expect(expectOne(await doctorAt(server), "rules", "ok").found).toBe(
    "1 project has rules that this release can use",
  );
  const salts = new DailySalts({
    ...at,
    connection,
    log: { warn: () => {} },
    wallMs: () => Date.now(),
  });
  onTestFinished(() => salts.close());
  await salts.provide("shop");
  await doctorAt(server).then((run) => expectOne(run, "rules", "ok"));
  await jetstream(connection).publish("$KV.penstock_salts.shop.20000", "short");
  expect(expectOne(await doctorAt(server), "rules", "fail").found).toContain(
    "the salt of project shop for 2024-10-04 is damaged",
  );
  const manager = await jetstreamManager(connection);
  await manager.streams.purge("KV_penstock_salts");
  await jetstream(connection).publish("$KV.penstock_rules.shop.1", '{"format":9}');
  const run = await doctorAt(server);
  expect(expectOne(run, "rules", "fail").found).toContain(
    "version 1 of the rules of project shop cannot be used: version 1 of the rules of project shop has format 9: another release of Penstock has written it",
  );
  expect(run.exitCode).toBe(1);
  expect(run.out).not.toContain("secret-plan");
  const entry = { id: "shop", name: "shop", keys: ["phc_shop"], enabled: true };
  await jetstream(connection).publish("$KV.penstock_projects.shop", JSON.stringify(entry));
  expect(expectOne(await doctorAt(server), "rules", "fail").found).toContain(
    "the registry entry of project shop has no version of its rules, although the rules bucket has versions",
  );
});
