import { jetstreamManager } from "@nats-io/jetstream";
import { describe, expect, test, vi } from "vitest";
import { natsServerForFile } from "../../kit/for-file.ts";
import { linesOf, nextTurn, type Settled, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();

describe("history", () => {
  test("is stored in order through freezes, crashes and repeated sends", async () => {
    const rig = await startRig(server, { ackTimeoutMs: 150, settings: { frameBytesMax: 4_000 } });
    const sends: Promise<Settled>[] = [];
    const expected: string[] = [];

    async function queueMany(round: number): Promise<void> {
      for (let number = 0; number < 12; number++) {
        const line = `${round}/${number}:${"z".repeat(1_200)}`;
        expected.push(line);
        const messageId = `own-${round}-${number}`;
        const own = number % 4 === 3;
        sends.push(
          own ? rig.sendOwn("historical", [line], { messageId }) : rig.send("historical", line),
        );
        if (number % 3 === 0) await nextTurn();
      }
    }

    for (let round = 0; round < 3; round++) {
      await vi.waitFor(() => expect(rig.link.connected).toBe(true), 5_000);
      await queueMany(round);
      server.freeze();
      await queueMany(round + 10);
      const retries = rig.heard.retries;
      await vi.waitFor(() => expect(rig.heard.retries).toBeGreaterThan(retries), 5_000);
      if (round === 1) server.thaw();
      else await server.restart();
    }

    for (const { outcome } of await Promise.all(sends))
      expect(outcome).toMatch(/^(stored|duplicate)$/);
    expect(linesOf(await rig.stored("historical"))).toEqual(expected);
    await rig.close();
  });

  test("does not overtake a refused frame that waits to be sent again", async () => {
    const rig = await startRig(server);
    const jsm = await jetstreamManager(rig.link.connection);
    const name = `${rig.settings.subjectPrefix}_HISTORICAL_0`.toUpperCase();
    const { config } = await jsm.streams.info(name);
    await jsm.streams.delete(name);
    const first = rig.send("historical", "first");
    await vi.waitFor(() => expect(rig.heard.failures).toContain("no_responders"), {
      timeout: 30_000,
      interval: 1,
    });
    await jsm.streams.add(config);
    const second = rig.send("historical", "second");
    expect(await Promise.all([first, second])).toEqual([stored, stored]);
    expect(linesOf(await rig.stored("historical"))).toEqual(["first", "second"]);
    await rig.close();
  });
});
