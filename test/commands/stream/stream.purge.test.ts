import { AckPolicy, DeliverPolicy } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { streamRig } from "./stream-kit.ts";

const server = await natsServerForFile();

test("stream purge removes the messages of one project or all", async () => {
  const { stream, publish, messages } = await streamRig(server);
  for (const project of ["shop", "blog", "shop", "blog", "shop"]) await publish(project);
  const dry = await stream(["purge", "live", "--project", "shop", "--dry-run"]);
  expect(dry.out).toContain("PENSTOCK_LIVE_0: 3 messages of shop before sequence 6\n");
  expect((await stream(["purge", "live"])).fault).toContain("Confirm with --yes");
  expect((await stream(["purge", "live"], "no")).fault).toBe(
    "stream purge: not confirmed: nothing was changed",
  );
  expect(await messages()).toBe(5);
  await stream(["purge", "live", "--project", "shop", "--to", "3", "--yes"]);
  expect(await messages()).toBe(3);
  const all = await stream(["purge", "PENSTOCK_LIVE_0"], "PENSTOCK_LIVE_0");
  expect(all.out).toContain("PENSTOCK_LIVE_0: 3 messages removed");
  expect(all.audit).toMatchObject([{ change: "stream purge", before: 6, result: "done" }]);
  expect(await publish("shop")).toBe(6);
  const again = await stream(["purge", "live", "--to", "5", "--yes"]);
  expect([again.out, again.fault]).toEqual([
    "PENSTOCK_LIVE_0: 0 messages before sequence 6\nnothing to remove\n",
    undefined,
  ]);
  expect(await messages()).toBe(1);
});

test("stream purge fails while a durable reader has unread messages", async () => {
  const { stream, publish, messages, manager } = await streamRig(server);
  for (let count = 0; count < 4; count++) await publish("shop");
  await manager.consumers.add("PENSTOCK_LIVE_0", {
    durable_name: "warehouse",
    ack_policy: AckPolicy.Explicit,
    filter_subject: "penstock.live.0.shop",
  });
  const refused = await stream(["purge", "live", "--yes"]);
  expect(refused.fault).toContain("warehouse has not read 4 messages of PENSTOCK_LIVE_0");
  const partly = await stream(["purge", "live", "--to", "3", "--yes"]);
  expect(partly.fault).toContain("warehouse has not read 3 messages");
  const dry = await stream(["purge", "live", "--dry-run"]);
  expect([dry.fault, dry.err]).toEqual([undefined, expect.stringContaining("warehouse")]);
  expect(await messages()).toBe(4);
  // The messages are younger than an hour, so nothing would expire.
  expect((await stream(["set", "live", "--max-age", "1h"])).fault).toBeUndefined();
  const other = await stream(["purge", "live", "--project", "blog", "--yes"]);
  expect(other.fault).toContain("stream purge: there is no project blog");
  const shown = await stream(["show", "live"]);
  expect(shown.out).toMatch(/PENSTOCK_LIVE_0 +warehouse +4\n/);
  const accepted = await stream(["purge", "live", "--unread", "--yes"]);
  expect(accepted.fault).toBeUndefined();
  expect(await messages()).toBe(0);
});

test("stream purge treats messages in a running sink as unread", async () => {
  const { stream, publish, messages, manager, js } = await streamRig(server);
  for (let count = 0; count < 3; count++) await publish("shop");
  const name = "penstock_sink_test";
  const start = async (sequence: number) => {
    await manager.consumers.delete("PENSTOCK_LIVE_0", name).catch(() => {});
    await manager.consumers.add("PENSTOCK_LIVE_0", {
      name,
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: sequence,
    });
  };
  const purge = () => stream(["purge", "live", "--yes"]);
  await start(1);
  const reading = await js.consumers.get("PENSTOCK_LIVE_0", name);
  for (let count = 0; count < 3; count++) await reading.next();
  expect((await purge()).fault).toContain(`${name} has not read 3 messages`);
  await start(3);
  expect((await purge()).fault).toContain(`${name} has not read 1 message of PENSTOCK_LIVE_0`);
  await start(4);
  expect((await purge()).fault).toBeUndefined();
  expect(await messages()).toBe(0);
});

test("stream purge keeps messages that are stored while it runs", async () => {
  const { stream, publish, manager } = await streamRig(server);
  const acked: number[] = [];
  let isOver = false;
  const load = (async () => {
    while (!isOver) acked.push(await publish("shop"));
  })();
  while (acked.length < 50) await new Promise((resolve) => setImmediate(resolve));
  const purged = await stream(["purge", "live", "--yes"]);
  isOver = true;
  await load;
  expect(purged.fault).toBeUndefined();
  const before = Number(/before sequence (\d+)/.exec(purged.out)?.[1]);
  const { state } = await manager.streams.info("PENSTOCK_LIVE_0");
  expect(acked.at(-1)).toBeGreaterThan(before);
  expect([state.first_seq, state.last_seq, state.messages]).toEqual([
    before,
    acked.at(-1),
    acked.filter((sequence) => sequence >= before).length,
  ]);
});
