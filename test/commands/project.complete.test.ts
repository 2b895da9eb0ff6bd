import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { natsServerForFile } from "../kit/for-file.ts";
import { projectCommand } from "../kit/project-command.ts";

const server = await natsServerForFile();

const project = (...args: string[]) => projectCommand(server.url, args);

test("project complete succeeds only if no project is missing", async () => {
  const connection = await connect({ servers: server.url });
  const { streams } = await jetstreamManager(connection);
  await streams.add({ name: "PENSTOCK_LIVE_0", subjects: ["penstock.live.0.*"] });
  for (const id of ["shop", "blog"])
    await jetstream(connection).publish(`penstock.live.0.${id}`, "{}");
  await connection.close();
  await project("add", "shop", "--key", "phc_shop");
  await expect(project("complete")).rejects.toThrow(
    "the registry lacks projects with events in the streams (blog)",
  );
  await project("add", "blog", "--key", "phc_blog");
  expect(await project("complete")).toBe(
    "the registry is complete with 2 projects; requests with any other key now get 401\n",
  );
  expect(await project("list")).not.toContain("registry.incomplete");
});
