import { describe, expect, test } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, nextTurn, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

describe("while the server does not respond", () => {
  test("a sent frame is unknown and an unsent frame refused at the deadline", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 5_000 });
    server.freeze();
    const sent = rig.send("live", "sent", { withinMs: 300 });
    await nextTurn();
    const gathered = rig.send("live", "gathered", { withinMs: 200 });
    const gatheredLonger = rig.send("live", "with it", { withinMs: 9_000 });
    expect(await gathered).toEqual({ outcome: "refused", code: "unavailable" });
    expect(await sent).toEqual({ outcome: "unknown", code: "timeout" });
    const next = rig.send("live", "next");
    await nextTurn();
    server.thaw();

    expect(await next).toEqual(stored);
    expect(await gatheredLonger).toEqual(stored);
    expect(linesOf(await rig.stored("live"))).toEqual(["sent", "with it", "next"]);
    expect(rig.heard.framesAcked).toBe(2);
    await rig.close();
  });

  test("a frame whose first send got no answer stays unknown if refused later", async () => {
    const rig = await startRig(server);
    server.freeze();
    const sent = rig.send("live", "sent", { withinMs: 1_500 });
    await nextTurn();
    await server.restart({ jetstream: false });
    expect(await sent).toEqual({ outcome: "unknown", code: "timeout" });
    expect(rig.heard.failures).toContain("no_responders");
    await rig.close();
  });
});
