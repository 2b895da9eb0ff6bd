// A server may limit how many watches a stream has; newer ones do unless told otherwise. The bucket
// asks for room for every gateway, and a gateway that is refused a watch polls, so that it knows
// new projects all the same.

import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { bucketName } from "../../../../src/gateway/projects/registry/bucket.ts";
import { addProject, listProjects } from "../../../../src/gateway/projects/registry/commands.ts";
import { openRegistry, type Registry } from "../../../../src/gateway/projects/registry/registry.ts";
import { natsServerForFile } from "../../../kit/for-file.ts";
import { newPlace } from "../registry-kit.ts";

const soon = { timeout: 30_000, interval: 20 };

const server = await natsServerForFile({
  extraConfig:
    "accounts { A { users = [{ user: a, password: a }], jetstream { max_consumers: 1 } } }",
});
const connection = await connect({ servers: server.url, user: "a", pass: "a" });

afterAll(() => connection.close());

async function start(place: {
  prefix: string;
  replicas: number;
}): Promise<{ registry: Registry; said: string[] }> {
  const said: string[] = [];
  const note = (_: object, message: string): void => void said.push(message);
  const log = { info: note, warn: note, error: note };
  return {
    registry: await openRegistry({ connection, ...place, checkIntervalMs: 50, log }),
    said,
  };
}

test("more watches than the server allows: a gateway without a watch says so and polls; commands go on", async () => {
  const place = newPlace();
  for (const id of ["a", "b"]) await addProject(connection, { ...place, id, key: `phc_${id}` });
  const manager = await jetstreamManager(connection);
  const stream = `KV_${bucketName(place.prefix)}`;
  const { registry, said } = await start(place);
  // With a limit of one, nats-server refuses the first already.
  expect(said).toContain("the project registry is polled, not watched");
  expect((await listProjects(connection, place)).map(({ id }) => id)).toEqual(["a", "b"]);
  await addProject(connection, { ...place, id: "c", key: "phc_c" });
  await expect.poll(() => registry.byKey("phc_c")?.id, soon).toBe("c");
  expect(registry.byKey("phc_a")?.id).toBe("a");
  await expect.poll(() => registry.refusalOf("phc_nobody"), soon).toBeUndefined();
  await manager.streams.delete(stream);
  await expect.poll(() => registry.fault, soon).toContain("it is gone");
  expect(registry.byKey("phc_c")?.id).toBe("c");
  await registry.close();
});
