// Runs every command of the guide on rules, in its order, against a gateway.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { addProject } from "../../src/gateway/projects/registry/commands.ts";
import { gatewayForFile } from "../kit/for-file.ts";
import { until } from "../kit/gateway.ts";
import { untilRejected } from "../kit/rejected.ts";
import { runCommand } from "../kit/run-command.ts";
import { read } from "./docs-kit.ts";

const guide = read("docs/guides/rules.md");
/** The text of each block below a heading, in lists too, by the language. */
const blocksBelow = (heading: string, language: string): string[] => {
  const section = guide.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return [...section.matchAll(/^( *)```(\S*)[^\n]*\n([\s\S]*?)^\1```$/gm)]
    .filter(([, , found]) => found === language)
    .map(([, indent = "", , text = ""]) => text.replaceAll(new RegExp(`^${indent}`, "gm"), ""));
};

const gateway = await gatewayForFile();
const shop = { id: "shop", key: "phc_shop" };
const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-guide-"));
afterAll(() => rmSync(folder, { recursive: true }));
const file = path.join(folder, "shop.yaml");
const env = { PENSTOCK_NATS_URL: gateway.nats.url, PENSTOCK_DATA_DIR: folder };

/** Runs the commands of a section that contain a text. Returns their output. */
async function run(heading: string, text = ""): Promise<string> {
  const lines = blocksBelow(heading, "sh").join("").split("\n");
  const commands = lines.filter((line) => line.startsWith("penstock ") && line.includes(text));
  expect(commands.length).toBeGreaterThan(0);
  let out = "";
  for (const command of commands) {
    const here = command
      .replace("shop.yaml", file)
      .replace("http://127.0.0.1:8000", `${gateway.url} --yes`);
    // A command that asks for confirmation gets the project.
    const ran = await runCommand(env, here.split(" ").slice(1), shop.id);
    expect([command, ran.fault]).toEqual([command, undefined]);
    out += ran.out;
  }
  return out.replaceAll(file, "shop.yaml");
}

async function send(...batch: object[]): Promise<Record<string, unknown>> {
  const events = batch.map((event) => ({ distinct_id: "u", ...event }));
  return (await gateway.post("/batch/", { api_key: shop.key, batch: events })).json;
}

const stored = async (name: string) =>
  (await gateway.events(shop)).filter(({ event }) => event === name);

/** Waits until the rules in use drop or change an event, as they should within 2 s. */
const inUse = async (event: object, filtered: number) =>
  await until(async () => ((await send(event))["filtered"] ?? 0) === filtered);

test("the guide on rules works as it is written", async () => {
  const connection = await connect({ servers: gateway.nats.url });
  await addProject(connection, { prefix: "penstock", replicas: 1, ...shop });
  await connection.close();
  const signUp = { event: "signed up", properties: { email: "a@b.c" }, $set: { email: "a@b.c" } };
  await until(async () => (await send(signUp))["accepted"] === 1);

  const emails = "Remove e-mail addresses";
  writeFileSync(file, blocksBelow(emails, "yaml")[0]!);
  const [checked, , applied] = blocksBelow(emails, "");
  expect(await run(emails, "check shop.yaml")).toContain(checked);
  expect(await run(emails, "--against")).toMatch(/^no-emails {2}enforce {2}0 {8}0 {12}1 /m);
  expect(await run(emails, "apply")).toBe(applied);
  await until(async () => {
    await send(signUp);
    return (await stored("signed up")).some(({ rules }) => rules === 1);
  });
  expect((await stored("signed up")).at(-1)).toMatchObject({ properties: {}, rules: 1 });

  const heartbeats = "Drop heartbeats, sample a chatty event";
  const rules = blocksBelow(heartbeats, "yaml")[0]!;
  writeFileSync(file, rules);
  expect(await run(heartbeats)).toContain("version 2 of its rules (was 1)");
  await inUse({ event: "ping 1" }, 1);
  expect(await send({ event: "scroll" })).toMatchObject({ accepted: 1 });

  const addresses = "Shorten the clients' addresses";
  const privacy = blocksBelow(addresses, "yaml")[0]!;
  writeFileSync(file, privacy + rules);
  expect((await stored("scroll")).at(-1)).toMatchObject({ ip: "127.0.0.1" });
  expect(await run(addresses)).toContain("version 3 of its rules (was 2)");
  await until(async () => {
    await send({ event: "shortened" });
    return (await stored("shortened")).at(-1)?.["ip"] === "127.0.0.0";
  });

  const orders = "Quarantine a wrong order";
  const order = blocksBelow(orders, "yaml")[0]!.replace("rules:\n", "");
  writeFileSync(file, privacy + rules + order);
  expect(await run(heartbeats, "apply")).toContain("version 4 of its rules (was 3)");
  await inUse({ event: "order", properties: { items: 2 } }, 1);
  expect(await untilRejected(gateway, shop, 1)).toHaveLength(1);
  expect(await run(orders, "list")).toContain("1 rejected event: rule wrong-orders 1");
  expect(await run(orders, "replay")).toContain("1 event stored");
  expect((await stored("order")).at(-1)).toMatchObject({ properties: { items: 2, total: 0 } });

  expect(await run("Undo")).toContain("version 5 of its rules (was 4)");
  await inUse({ event: "ping 1" }, 0);
}, 60_000);
