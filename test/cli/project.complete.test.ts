// An operator whose registry was lost adds the projects again, and says when all are back.

import { Writable } from "node:stream";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { commandLine } from "../../src/app/command-line.ts";
import { natsServerForFile } from "../../testkit/for-file.ts";

const server = await natsServerForFile();

/** What the command prints. Rejects with what main.ts would show. */
async function said(...args: string[]): Promise<string> {
  let text = "";
  const stdout = new Writable({
    write(chunk, _, done) {
      text += String(chunk);
      done();
    },
  });
  await commandLine({
    env: { PENSTOCK_NATS_URL: server.url },
    host: process,
    mainFile: "",
    channel: { connected: false, on: () => {} },
    stdout,
    stderr: stdout,
    stop: new AbortController().signal,
  }).parseAsync(args, { from: "user" });
  return text;
}

test("`project complete` names what the registry lacks, and is done once it lacks nothing", async () => {
  const connection = await connect({ servers: server.url });
  const { streams } = await jetstreamManager(connection);
  await streams.add({ name: "PENSTOCK_LIVE_0", subjects: ["penstock.live.0.*"] });
  for (const id of ["shop", "blog"])
    await jetstream(connection).publish(`penstock.live.0.${id}`, "{}");
  await connection.close();
  await said("project", "add", "shop", "--key", "phc_shop");
  await expect(said("project", "complete")).rejects.toThrow(
    "the registry lacks projects with events in the streams (blog)",
  );
  await said("project", "add", "blog", "--key", "phc_blog");
  expect(await said("project", "complete")).toBe(
    "the registry is complete with 2 projects, and every other key is answered 401 from now on\n",
  );
  expect(await said("project", "list")).not.toContain("registry.incomplete");
});
