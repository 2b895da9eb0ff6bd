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

describe("while each request has its own frame", () => {
  test.each([
    ["live", "32 frames of a few bytes", "x", 32],
    ["live", "2 frames of 16 KiB", "x".repeat(16_384), 2],
    ["live", "1 frame of 256 KiB", "x".repeat(262_144), 1],
    ["historical", "1 frame of a few bytes", "x", 1],
  ] as const)("the %s stream has %s in flight", async (lane, _, line, underWay) => {
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
