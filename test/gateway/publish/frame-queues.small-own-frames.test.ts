import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { nextTurn, type Rig, type Settled, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

async function sendOwnFrames(
  rig: Rig,
  lane: "live" | "historical",
  { count, line }: { count: number; line: string },
) {
  const sends: Promise<Settled>[] = [];
  for (let index = 0; index < count; index++) {
    sends.push(
      rig.sendOwn(lane, [`${line}${index}`], { messageId: `${lane}-${line.length}-${index}` }),
    );
    await nextTurn();
  }
  return sends;
}

describe("of the frames of single requests, the expected number is in flight at the same time", () => {
  test.each([
    ["live", "of a few bytes", "x", 32],
    ["live", "of 16 KiB", "x".repeat(16_384), 2],
    ["live", "of 256 KiB", "x".repeat(262_144), 1],
    ["historical", "of a few bytes, one by one in order", "x", 1],
  ] as const)("%s frames %s", async (lane, _, line, underWay) => {
    const count = Math.max(4, underWay + 8);
    const rig = await startRig(server);
    server.freeze();
    const sends = await sendOwnFrames(rig, lane, { count, line });
    expect(rig.heard.framesSent).toBe(underWay);
    server.thaw();
    expect(await Promise.all(sends)).toEqual(Array.from({ length: count }, () => stored));
    expect((await rig.stored(lane)).map((frame) => frame.lines)).toHaveLength(count);
    await rig.close();
  });
});
