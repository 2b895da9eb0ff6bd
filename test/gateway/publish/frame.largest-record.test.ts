import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, startRig, stored } from "../../kit/publisher-rig.ts";

const maxPayload = 65_536;
const server = await natsServerForFile({ maxPayload });

describe("the size limit of frames and records", () => {
  test("follows the server's max_payload", async () => {
    const rig = await startRig(server);
    const { recordBytesMax, frameBytesMax } = rig.publisher;
    expect(frameBytesMax).toBe(recordBytesMax);
    expect(recordBytesMax).toBeLessThan(maxPayload);
    const largest = "x".repeat(recordBytesMax - 1);
    const longestId = "i".repeat(256);
    expect(await rig.send("live", largest)).toEqual(stored);
    expect(await rig.sendOwn("live", [largest], { messageId: longestId })).toEqual(stored);
    expect(linesOf(await rig.stored("live"))).toEqual([largest, largest]);
    await rig.close();
  });

  test("allows a separate frame for a record larger than a frame", async () => {
    const rig = await startRig(server, { settings: { frameBytesMax: 2_000 } });
    expect(rig.publisher.frameBytesMax).toBe(2_000);
    const large = "y".repeat(50_000);
    expect(await rig.sendOwn("live", [large], { messageId: "large" })).toEqual(stored);
    expect(linesOf(await rig.stored("live"))).toEqual([large]);
    await rig.close();
  });
});
