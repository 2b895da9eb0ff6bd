import { writeFileSync } from "node:fs";
import path from "node:path";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { removeProject } from "../../src/commands/project-remove.ts";
import { lanes, rejectedLane } from "../../src/platform/nats/names.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";
import { commandWorld } from "../kit/command-context.ts";
import { startTestGateway } from "../kit/gateway.ts";
import { temporaryFolder } from "../kit/processes.ts";
import { runCommand } from "../kit/run-command.ts";

const within = { timeout: 10_000 };

async function rig() {
  const gateway = await startTestGateway();
  onTestFinished(() => gateway.stop());
  const env = {
    PENSTOCK_NATS_URL: gateway.nats.url,
    PENSTOCK_DATA_DIR: temporaryFolder(),
    PENSTOCK_REQUEST_TIMEOUT_MS: "100",
    PENSTOCK_ACK_TIMEOUT_MS: "50",
  };
  const project = (...args: string[]) => {
    const isRemoval = args[0] === "remove";
    return runCommand(env, ["project", ...args, ...(isRemoval ? ["--no-effects"] : [])]);
  };
  for (const id of ["shop", "blog"]) await project("add", id, "--key", `phc_${id}`);
  const send = async (id: string, more: object = {}) => {
    const body = { api_key: `phc_${id}`, event: "e", distinct_id: "u", ...more };
    return (await gateway.post("/capture/", body)).status;
  };
  const stored = async (id: string) => {
    const found = await Promise.all(lanes.map((lane) => gateway.frames({ id, key: "" }, lane)));
    return found.flat().length;
  };
  return { gateway, env, project, send, stored };
}

test("project remove removes only the project's own events", async () => {
  const { project, send, stored } = await rig();
  for (const id of ["shop", "blog"]) {
    expect(await send(id)).toBe(200);
    expect(await send(id, { timestamp: "2020-01-01T00:00:00Z", historical_migration: true })).toBe(
      200,
    );
  }
  const dry = await project("remove", "shop", "--dry-run");
  expect(dry.fault).toBeUndefined();
  expect(dry.out).toMatch(/^project shop: 1 key, enabled\nPENSTOCK_LIVE_0: \d+ messages?\n/);
  expect(dry.out).toContain("nothing was changed (--dry-run)");
  expect(await send("shop")).toBe(200);
  expect((await project("remove", "shop")).fault).toContain("Confirm with --yes");
  const removed = await project("remove", "shop", "--yes");
  expect(removed.fault).toBeUndefined();
  expect(removed.audit).toMatchObject([
    {
      change: "project remove",
      project: "shop",
      result: "done",
      actor: expect.stringMatching(/.@./),
    },
  ]);
  expect(JSON.stringify(removed)).not.toContain("phc_shop");
  expect(await send("shop")).toBe(401);
  expect(await send("blog")).toBe(200);
  expect([await stored("shop"), (await stored("blog")) > 0]).toEqual([0, true]);
  const list = (await project("list")).out;
  expect([list.includes("shop"), list.includes("blog")]).toEqual([false, true]);
  const startedMs = performance.now();
  const again = await project("remove", "shop", "--yes");
  expect(again.fault).toBe(
    "project remove: there is no project shop, and no events, usage record or rules of it. Nothing was changed",
  );
  expect(performance.now() - startedMs).toBeLessThan(1_000);
  expect(again.audit).toEqual([]);
  expect((await project("remove", "shpo", "--yes")).fault).toContain("there is no project shpo");
});

// The cases run together, because each waits several times for the gateways.
test("project remove that is killed after any step is completed later", async () => {
  const steps = ["disabled", "purged", "effects"] as const;
  await Promise.all(steps.map(expectCompletedAfter));
});

async function expectCompletedAfter(last: "disabled" | "purged" | "effects"): Promise<void> {
  const { env, project, send, stored } = await rig();
  expect(await send("shop")).toBe(200);
  const result = readConfig(env, {});
  if (!result.ok) throw new Error(result.faults.join("; "));
  const { context } = commandWorld(env);
  const stepped = (step: string) => {
    if (step === last) throw new Error("killed");
  };
  const options = { dryRun: false, yes: true, effects: false, stepped };
  await expect(removeProject({ config: result.config, context }, "shop", options)).rejects.toThrow(
    "killed",
  );
  expect(await send("shop"), last).toBe(401);
  expect((await project("list")).out, last).toMatch(/^shop +disabled/m);
  expect((await project("remove", "shop", "--yes")).fault, last).toBeUndefined();
  expect([await stored("shop"), await send("shop")], last).toEqual([0, 401]);
  expect((await project("list")).out, last).not.toContain("shop");
}

test.each([
  [
    "disabled",
    "project shop is disabled, and its stored events are not removed yet. Run the command again to continue. To accept its events again instead, run `penstock project enable shop`",
  ],
  [
    "purged",
    "project shop is disabled, and its stored events are removed. Run the command again to continue. To accept its events again instead, run `penstock project enable shop`",
  ],
] as const)("a stop signal ends project remove after the step %s", async (last, state) => {
  const { env, project, send, stored } = await rig();
  expect(await send("shop")).toBe(200);
  const result = readConfig(env, {});
  if (!result.ok) throw new Error(result.faults.join("; "));
  const { context, stop } = commandWorld(env);
  const stepped = (step: string) => {
    if (step === last) stop.abort();
  };
  const options = { dryRun: false, yes: true, effects: false, stepped };
  await expect(
    removeProject({ config: result.config, context }, "shop", options),
  ).rejects.toMatchObject({ message: `project remove: interrupted: ${state}`, exitCode: 130 });
  expect((await stored("shop")) > 0).toBe(last === "disabled");
  expect((await project("list")).out).toMatch(/^shop +disabled/m);
  expect((await project("enable", "shop")).fault).toBeUndefined();
  expect(await send("shop")).toBe(200);
});

test.each([
  ["requests in progress", /waiting \d/, /is disabled, and its stored events are not removed yet/],
  ["gateways", undefined, /its usage record and rules are not removed yet/],
] as const)("a stop signal ends the wait of project remove for %s", async (_, line, state) => {
  const { env, gateway, project, send } = await rig();
  expect(await send("shop")).toBe(200);
  const connection = await connect({ servers: gateway.nats.url });
  onTestFinished(() => connection.close());
  const usage = await new Kvm(connection).create("penstock_usage");
  await usage.put("shop.process", "{}");
  const result = readConfig({ ...env, PENSTOCK_REQUEST_TIMEOUT_MS: line ? "60000" : "100" }, {});
  if (!result.ok) throw new Error(result.faults.join("; "));
  const { context, said, stop } = commandWorld(env);
  let isWaiting = false;
  const stepped = (step: string) => {
    isWaiting = step === "effects";
  };
  const options = { dryRun: false, yes: true, effects: false, stepped };
  const removal = removeProject({ config: result.config, context }, "shop", options);
  const check = expect(removal).rejects.toMatchObject({
    message: expect.stringMatching(state),
    exitCode: 130,
  });
  if (line === undefined)
    await expect
      .poll(async () => isWaiting && !(await project("list")).out.includes("shop"), within)
      .toBe(true);
  else await expect.poll(() => said.err, within).toMatch(line);
  stop.abort();
  await check;
  expect((await project("remove", "shop", "--yes")).fault).toBeUndefined();
  expect(await usage.get("shop.process")).toBeNull();
});

test("project remove removes events that a suspended gateway stores after the first purge", async () => {
  const { gateway, env, stored } = await rig();
  const connection = await connect({ servers: gateway.nats.url });
  onTestFinished(() => connection.close());
  const js = jetstream(connection);
  const late: Promise<unknown>[] = [];
  const stepped = (step: string) => {
    if (step !== "effects") return;
    for (const lane of ["live", rejectedLane])
      late.push(js.publish(`penstock.${lane}.0.shop`, "{}\n"));
  };
  const result = readConfig(env, {});
  if (!result.ok) throw new Error(result.faults.join("; "));
  const { context, said } = commandWorld(env);
  const options = { dryRun: false, yes: true, effects: false, stepped };
  await removeProject({ config: result.config, context }, "shop", options);
  expect(await Promise.all(late)).toHaveLength(2);
  for (const stream of ["PENSTOCK_LIVE_0", "PENSTOCK_REJECTED_0"])
    expect(said.out).toContain(`${stream}: 1 message stored during the command: removed\n`);
  const { state } = await (await jetstreamManager(connection)).streams.info("PENSTOCK_REJECTED_0");
  expect([await stored("shop"), state.messages]).toEqual([0, 0]);
});

test.each([
  ["enabled", /^shop +disabled/m, ["enable", "shop"], "shop"],
  ["added", /^(?!.*shop)/s, ["add", "shop", "--key", "phc_new"], "new"],
])(
  "project remove keeps the events of a project that is %s meanwhile",
  async (change, state, args, key) => {
    const { env, project, send, stored } = await rig();
    expect(await send("shop")).toBe(200);
    const rulesFile = path.join(temporaryFolder(), "rules.yaml");
    writeFileSync(rulesFile, "privacy: { ip: drop }\n");
    const removal = project("remove", "shop", "--yes");
    await expect.poll(async () => (await project("list")).out, within).toMatch(state);
    expect((await project(...args)).fault).toBeUndefined();
    expect((await runCommand(env, ["rules", "apply", "shop", rulesFile])).fault).toBeUndefined();
    await expect.poll(() => send(key), within).toBe(200);
    const { fault } = await removal;
    expect(fault).toContain(
      `project remove: another command has ${change} the project shop meanwhile. `,
    );
    expect(await stored("shop")).toBeGreaterThan(0);
    expect((await runCommand(env, ["rules", "show", "shop"])).out).toContain("ip: drop");
    expect(await send(key)).toBe(200);
  },
);

test("project remove removes a project whose registry entry is damaged", async () => {
  const { gateway, project, send, stored } = await rig();
  expect(await send("shop")).toBe(200);
  const connection = await connect({ servers: gateway.nats.url });
  onTestFinished(() => connection.close());
  const kvm = new Kvm(connection);
  await (await kvm.open("penstock_projects")).put("shop", "{");
  const usage = await kvm.create("penstock_usage");
  for (const id of ["shop", "blog"]) await usage.put(`${id}.process`, "{}");
  const dry = await project("remove", "shop", "--dry-run");
  expect(dry.out).toMatch(/^project shop: its registry entry is damaged\n/);
  expect((await project("remove", "shop", "--yes")).fault).toBeUndefined();
  expect([await stored("shop"), await send("shop"), await send("blog")]).toEqual([0, 401, 200]);
  const left: string[] = [];
  for await (const key of await usage.keys()) left.push(key);
  expect(left).toEqual(["blog.process"]);
});

test("project remove fails on a leaf node", async () => {
  const env = { PENSTOCK_NATS_URL: "nats://127.0.0.1:1", PENSTOCK_HUB_DOMAIN: "hub" };
  const { fault } = await runCommand(env, ["project", "remove", "shop", "--yes"]);
  expect(fault).toContain("Run the command at the hub");
});
