import path from "node:path";
import { PassThrough } from "node:stream";
import { AckPolicy } from "@nats-io/jetstream";
import { expect, onTestFinished, test } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import {
  oldestNatsServer,
  startNatsServer,
  type TestNatsServer,
  untilStreamsGone,
} from "../../kit/nats-server.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { runCommand } from "../../kit/run-command.ts";
import { streamRig } from "./stream-kit.ts";

const server = await natsServerForFile();
const [live, empty] = ["PENSTOCK_LIVE_0", "PENSTOCK_LIVE_1"];

interface Asked {
  readonly on?: TestNatsServer;
  readonly more?: readonly string[];
  /** Runs before the first event is stored. */
  readonly before?: (rig: Awaited<ReturnType<typeof streamRig>>) => Promise<void>;
}

/** Runs `stream purge live` until it asks for confirmation. The lane has a second, empty stream. */
async function asked({ on = server, more = [], before }: Asked = {}) {
  const rig = await streamRig(on);
  await before?.(rig);
  await rig.manager.streams.delete(empty).catch(() => {});
  const { config } = await rig.manager.streams.info(live);
  await rig.manager.streams.add({ ...config, name: empty, subjects: ["penstock.live.1.>"] });
  await runCommand(rig.env, ["project", "add", "shop"]);
  await rig.publish("shop");
  const stdin = new PassThrough();
  const { context, said, stop } = commandWorld(
    rig.env,
    Object.assign(stdin, { isTTY: true, setRawMode: () => {} }),
  );
  const run = commandLine(context).parseAsync(
    ["stream", "purge", "live", "--no-effects", ...more],
    { from: "user" },
  );
  const fault = run.then(
    () => undefined,
    (error: Error) => error.message,
  );
  await expect.poll(() => said.err).toContain("Type live to confirm: ");
  return { ...rig, said, stdin, stop, fault };
}

test.each([
  ["every message", []],
  ["a project", ["--project", "shop"]],
])("stream purge of %s keeps what an empty stream receives during the prompt", async (_, more) => {
  const oldest = await startNatsServer({ binary: oldestNatsServer() });
  onTestFinished(() => oldest.remove());
  const { js, messages, said, stdin, fault } = await asked({ on: oldest, more });
  await js.publish("penstock.live.1.shop", "{}\n");
  stdin.write("live\n");
  expect(await fault).toBeUndefined();
  expect([await messages(live), await messages(empty)]).toEqual([0, 1]);
  expect(said.err).toContain(`Remove 1 message from ${live}?`);
});

test("stream purge removes nothing from a stream that was re-created during the prompt", async () => {
  const { manager, ensure, publish, messages, stdin, fault } = await asked();
  await manager.streams.delete(live);
  await ensure();
  await publish("shop");
  stdin.write("live\n");
  expect(await fault).toContain(
    `the stream was re-created: ${live} was deleted and created or restored again`,
  );
  expect(await messages()).toBe(1);
});

test("stream purge removes nothing from a stream that was restored during the prompt", async () => {
  // This nats-server restores the time of creation too.
  const oldest = await startNatsServer({ binary: oldestNatsServer() });
  onTestFinished(() => oldest.remove());
  const folder = path.join(temporaryFolder(), "backup");
  const { manager, publish, messages, stream, stdin, fault } = await asked({
    on: oldest,
    before: async ({ stream }) => void (await stream(["backup", folder, live])),
  });
  const { created } = await manager.streams.info(live);
  await manager.streams.delete(live);
  await untilStreamsGone(oldest, [live]);
  expect((await stream(["restore", folder])).fault).toBeUndefined();
  await publish("shop");
  expect((await manager.streams.info(live)).created).toBe(created);
  stdin.write("live\n");
  expect(await fault).toContain(
    `the stream was re-created: ${live} was deleted and created or restored again`,
  );
  expect(await messages()).toBe(1);
});

test("stream purge checks the readers again after the confirmation", async () => {
  const { manager, messages, stdin, fault } = await asked();
  await manager.consumers.add("PENSTOCK_LIVE_0", {
    durable_name: "warehouse",
    ack_policy: AckPolicy.Explicit,
  });
  stdin.write("live\n");
  expect(await fault).toContain("warehouse has not read 1 message of PENSTOCK_LIVE_0");
  expect(await messages()).toBe(1);
});

test.each([
  ["Ctrl-C", ({ stop }: Awaited<ReturnType<typeof asked>>) => stop.abort()],
  ["the end of the input", ({ stdin }: Awaited<ReturnType<typeof asked>>) => void stdin.end()],
  ["another word", ({ stdin }: Awaited<ReturnType<typeof asked>>) => void stdin.write("yes\n")],
])("stream purge changes nothing after %s in the prompt", async (_, answer) => {
  const rig = await asked();
  answer(rig);
  expect(await rig.fault).toBe("stream purge: not confirmed: nothing was changed");
  expect(await rig.messages()).toBe(1);
});
