import { PassThrough } from "node:stream";
import { AckPolicy } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { streamRig } from "./stream-kit.ts";

const server = await natsServerForFile();

/** Runs `stream purge live` until it asks for confirmation. */
async function asked() {
  const rig = await streamRig(server);
  await rig.publish("shop");
  const stdin = new PassThrough();
  const { context, said, stop } = commandWorld(
    rig.env,
    Object.assign(stdin, { isTTY: true, setRawMode: () => {} }),
  );
  const run = commandLine(context).parseAsync(["stream", "purge", "live", "--no-effects"], {
    from: "user",
  });
  const fault = run.then(
    () => undefined,
    (error: Error) => error.message,
  );
  await expect.poll(() => said.err).toContain("Type live to confirm: ");
  return { ...rig, stdin, stop, fault };
}

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
