import { expect, test } from "vitest";
import { managerOf } from "../../../src/platform/nats/api.ts";
import { streamName } from "../../../src/platform/nats/names.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { nextTurn, type Rig, type Settled, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

async function muteHistory({ link, settings }: Rig): Promise<void> {
  const jsm = await managerOf(link.connection, { timeoutMs: 5_000 });
  const name = streamName(settings.subjectPrefix, "historical", 0);
  const { config } = await jsm.streams.info(name);
  await jsm.streams.delete(name);
  for (const subject of config.subjects) link.connection.subscribe(subject, { callback: () => {} });
  await link.connection.flush();
}

const given = { project: "mute", withinMs: 3_000 };
const lost: Settled = { outcome: "unknown", code: "timeout" };

test("a large frame is not delayed by a stream that does not acknowledge", async () => {
  const rig = await startRig(server);
  await muteHistory(rig);
  const mute = rig.sendOwn("historical", ["m".repeat(400_000)], { ...given, messageId: "m" });
  await nextTurn();
  const large = rig.sendOwn("live", ["l".repeat(400_000)], { messageId: "l" });

  expect(await Promise.race([mute, large])).toEqual(stored);
  expect(await large).toEqual(stored);
  expect(await mute).toEqual(lost);
  await rig.close();
});

test("a stream that does not acknowledge cannot take the whole window", async () => {
  const rig = await startRig(server, { framesUnackedMax: 4 });
  await muteHistory(rig);
  const projects = ["a", "b", "c", "d", "e"];
  const mute = projects.map((project) => rig.send("historical", "m", { ...given, project }));
  await nextTurn();
  expect(rig.heard.framesSent).toBe(4);
  const single = rig.send("live", "single");

  expect(await Promise.race([...mute, single])).toEqual(stored);
  expect(await Promise.all(mute)).toEqual([
    lost,
    lost,
    lost,
    lost,
    { outcome: "refused", code: "unavailable" },
  ]);
  await rig.close();
});
