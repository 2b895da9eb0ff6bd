import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, mebibyte, type Settled, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

const storeFull: Settled = { outcome: "refused", code: "store_full" };

describe("a full stream", () => {
  test("refuses events until it has room again", async () => {
    const rig = await startRig(server, { settings: { streamBytesMax: mebibyte } });
    const acknowledged: string[] = [];
    let outcome: Settled = stored;
    for (let number = 0; number < 20 && outcome.outcome === "stored"; number++) {
      const line = `${number}:${"x".repeat(200_000)}`;
      outcome = await rig.send("historical", line);
      if (outcome.outcome === "stored") acknowledged.push(line);
    }
    expect(outcome).toEqual(storeFull);
    expect(acknowledged).toHaveLength(5);
    expect(linesOf(await rig.stored("historical"))).toEqual(acknowledged);
    const name = `${rig.settings.subjectPrefix}_HISTORICAL_0`.toUpperCase();
    expect((await rig.streams.check()).join()).toContain(`stream ${name} is full`);

    // The publisher refuses events for a while without another request to the server.
    const framesSent = rig.heard.framesSent;
    expect(await rig.send("historical", "y".repeat(200_000))).toEqual(storeFull);
    expect(rig.heard.framesSent).toBe(framesSent);
    expect(rig.publisher.refusal()).toBeUndefined();
    expect(await rig.send("live", "small")).toEqual(stored);
    await vi.waitFor(() => expect(rig.publisher.outageMs("historical", "p")).toBeGreaterThan(0));
    expect(rig.publisher.outageMs("live", "p")).toBe(0);
    expect(rig.publisher.outageMs(undefined, "")).toBe(0);

    const jsm = await jetstreamManager(rig.link.connection);
    await jsm.streams.purge(name);
    await vi.waitFor(
      async () => expect(await rig.send("historical", "room again")).toEqual(stored),
      {
        timeout: 30_000,
        interval: 100,
      },
    );
    expect(linesOf(await rig.stored("historical"))).toEqual(["room again"]);
    expect(await rig.streams.check()).toEqual([]);
    await rig.close();
  });

  test("is reported before a request is processed if all streams are full", async () => {
    const rig = await startRig(server, { settings: { streamBytesMax: mebibyte } });
    for (const lane of ["live", "historical"] as const) {
      for (let number = 0; number < 6; number++)
        void (await rig.send(lane, `${number}:${"x".repeat(200_000)}`));
    }
    expect(rig.publisher.refusal()).toBe("store_full");
    await vi.waitFor(() => expect(rig.publisher.outageMs(undefined, "")).toBeGreaterThan(0));
    await vi.waitFor(() => expect(rig.publisher.refusal()).toBeUndefined(), 5_000);
    await rig.close();
  });
});
