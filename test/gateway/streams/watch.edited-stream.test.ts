import { DiscardPolicy, jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, liveStream, type Rig, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

async function edit(rig: Rig, change: Partial<StreamConfig>): Promise<void> {
  await (await jetstreamManager(rig.link.connection)).streams.update(liveStream(rig), change);
}

describe("a stream that was edited while in use", () => {
  test("is reported by readiness until the stream is fixed", async () => {
    const rig = await startRig(server);
    expect(await rig.streams.check()).toEqual([]);
    const edits: [Partial<StreamConfig>, Partial<StreamConfig>, string][] = [
      [{ discard: DiscardPolicy.Old }, { discard: DiscardPolicy.New }, "discard is old, not new"],
      [{ max_msgs: 10 }, { max_msgs: -1 }, "it has a limit of 10 messages"],
      [{ no_ack: true }, { no_ack: false }, "it does not acknowledge"],
      [
        { subjects: [`${rig.settings.subjectPrefix}.live.0.other`] },
        { subjects: [`${rig.settings.subjectPrefix}.live.0.*`] },
        `it does not accept the subject ${rig.settings.subjectPrefix}.live.0.*`,
      ],
      [
        { max_msg_size: 1_000 },
        { max_msg_size: -1 },
        "its maximum message size is 1000 bytes, and a full frame has 524800",
      ],
      [{ sealed: true }, {}, "it is sealed"],
    ];
    const promise = `stream ${liveStream(rig)} cannot guarantee that acknowledged events stay stored: `;
    for (const [change, cure, fault] of edits) {
      await edit(rig, change);
      expect(await rig.streams.check()).toEqual([promise + fault]);
      if (Object.keys(cure).length === 0) continue;
      await edit(rig, cure);
      expect(await rig.streams.check()).toEqual([]);
    }
    await rig.close();
  });

  test("immediately refuses a frame that it can never accept", async () => {
    const rig = await startRig(server);
    await edit(rig, { max_msg_size: 1_000 });
    const startedMs = performance.now();
    expect(await rig.send("live", "x".repeat(2_000))).toEqual({
      outcome: "refused",
      code: "unavailable",
    });
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    expect(rig.heard.retries).toBe(0);
    expect(rig.heard.failures).toEqual(["refused"]);
    expect(rig.log.join("\n")).toContain("exceeds the max_msg_size of the stream");
    expect(await rig.send("live", "small")).toEqual(stored);
    expect(linesOf(await rig.stored("live"))).toEqual(["small"]);
    await rig.close();
  });
});
