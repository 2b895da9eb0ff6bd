import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import { afterAll, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../kit/stored-events.ts";
import {
  addProjects,
  erased,
  eventOf,
  exported,
  frameOf,
  project,
  sharedFrameOf,
} from "./erase-kit.ts";

const nats = await natsServerForFile();
const natsUrl = nats.url;
const connection = await connect({ servers: natsUrl });
afterAll(() => connection.close());
await makeStreams(connection);

async function storedAndRemoved(frames: TestFrame[], how: "delete" | "lose"): Promise<void> {
  await addProjects(connection);
  await storeFrames(connection, frames);
  const projects = await new Kvm(connection).open("penstock_projects");
  if (how === "delete") await projects.delete(project);
  else await projects.destroy();
}

test("export recognises a removed project by its deletion marker", async () => {
  await storedAndRemoved([], "delete");
  expect((await exported(natsUrl)).lines).toEqual([]);
});

test("export recognises a project whose entry is unreadable", async () => {
  await addProjects(connection);
  const projects = await new Kvm(connection).open("penstock_projects");
  await projects.put("damaged", "{");
  expect((await exported(natsUrl, "damaged")).lines).toEqual([]);
  await projects.purge("damaged");
});

test("erase states the fix if an unknown project may have shared frames", async () => {
  await addProjects(connection);
  const gone = () => erased({ natsUrl, ids: ["ada"], project: "gone" });
  await expect(gone()).rejects.toThrow(
    /^erase: there is no project gone; the projects are other, shop$/,
  );
  await storeFrames(connection, [sharedFrameOf([], [eventOf("eve")])]);
  await expect(gone()).rejects.toThrow(
    "other, shop; if the project was removed, and messages of several projects still contain its events, first add the project again",
  );
});

test.each([
  ["delete", "whose events share frames with those of others", sharedFrameOf],
  ["lose", "whose registry entry is lost", (own: ReturnType<typeof eventOf>[]) => frameOf(own)],
] as const)("a removed project (%s), %s, can be exported and erased", async (how, _, frame) => {
  const before = (await exported(natsUrl)).lines.length;
  await storedAndRemoved([frame([eventOf("ada"), eventOf("bob")], [eventOf("eve")])], how);
  expect((await exported(natsUrl)).lines).toHaveLength(before + 2);
  const { out } = await erased({ natsUrl, ids: ["ada"] });
  expect(out).toContain("1 event erased");
  expect((await exported(natsUrl)).lines).toHaveLength(before + 1);
});
