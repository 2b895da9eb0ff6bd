import {
  DiscardPolicy,
  jetstreamManager,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { describe, expect, test, vi } from "vitest";
import { brokenPromises, wantedConfigs } from "../../../src/gateway/streams/desired.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import {
  liveStream,
  type Rig,
  type Settled,
  startRig,
  stored,
  streamSettings,
} from "../../kit/publisher-rig.ts";

const server = await natsServerForFile({ maxFileStore: 8 * 1_073_741_824 });

const second = 1_000_000_000;
const watchEveryMs = 20;
const within = { timeout: 30_000, interval: 20 };
const refused: Settled = { outcome: "refused", code: "unavailable" };

function liveRefusal(rig: Rig): string | undefined {
  return rig.publisher.refusalOf("live", "alpha")?.detail;
}

const edits: [change: Partial<StreamConfig>, cure: Partial<StreamConfig>, fault: string][] = [
  [
    { discard: DiscardPolicy.Old, max_msgs: 2 },
    { discard: DiscardPolicy.New, max_msgs: -1 },
    "discard is old, not new",
  ],
  [
    { max_msgs_per_subject: 1 },
    { max_msgs_per_subject: -1 },
    "it has a limit of 1 messages per subject",
  ],
  [{ no_ack: true }, { no_ack: false }, "it does not acknowledge"],
  [
    { duplicate_window: second },
    { duplicate_window: 120 * second },
    "its duplicate window is 1 s, not 120 s",
  ],
  [
    { max_age: second, duplicate_window: second },
    { max_age: 3_600 * second, duplicate_window: 120 * second },
    "it keeps events for 1 s",
  ],
];

describe("a stream that may lose acknowledged events", () => {
  test.each(edits)("refuses events soon after an edit to %j", async (...edit) => {
    const [change, cure, fault] = edit;
    const rig = await startRig(server, { watchEveryMs });
    const { streams } = await jetstreamManager(rig.link.connection);
    expect(await rig.send("live", "before")).toEqual(stored);
    await streams.update(liveStream(rig), change);
    await vi.waitFor(() => expect(liveRefusal(rig)).toContain(fault), within);
    expect(liveRefusal(rig)).toContain(
      `Stream ${liveStream(rig)} cannot guarantee that acknowledged events stay stored: `,
    );
    const framesSent = rig.heard.framesSent;
    expect(await rig.send("live", "to a stream that forgets")).toEqual(refused);
    expect(rig.heard.framesSent).toBe(framesSent);
    expect((await rig.streams.check()).join()).toContain(fault);
    expect(rig.log.filter((line) => line.includes("its events are rejected"))).toHaveLength(1);
    expect(rig.publisher.refusalOf("historical", "alpha")).toBeUndefined();
    expect(rig.publisher.refusal()).toBeUndefined();
    expect(await rig.send("historical", "old")).toEqual(stored);

    await streams.update(liveStream(rig), cure);
    await vi.waitFor(() => expect(liveRefusal(rig)).toBeUndefined(), within);
    expect(await rig.send("live", "after")).toEqual(stored);
    await rig.close();
  });

  test("leaves a frame in flight unknown", async () => {
    const rig = await startRig(server);
    rig.streams.states.of("live", 0).refusal = undefined;
    const { connection } = rig.link;
    const heard = new Promise<void>((resolve) => {
      connection.subscribe(`${rig.settings.subjectPrefix}.live.>`, {
        callback: () => resolve(),
        max: 1,
      });
    });
    server.freeze();
    const sent = rig.send("live", "under way");
    await vi.waitFor(() => expect(rig.heard.framesSent).toBe(1), within);
    // The stream itself is usable, and a reading in progress would report that.
    const refusal = { code: "unavailable", detail: "it was edited" } as const;
    Object.defineProperty(rig.streams.states.of("live", 0), "refusal", {
      get: () => refusal,
      set: () => {},
    });
    server.thaw();
    await heard;
    expect(await sent).toEqual({ outcome: "unknown", code: "unavailable" });
    await rig.close();
  });

  describe("after its deletion", () => {
    test("refuses events immediately instead of at each deadline", async () => {
      const rig = await startRig(server, { watchEveryMs });
      await (await jetstreamManager(rig.link.connection)).streams.delete(liveStream(rig));
      await vi.waitFor(() => expect(liveRefusal(rig)).toContain("it is missing"), within);
      const startedMs = performance.now();
      expect(await rig.send("live", "to nowhere")).toEqual(refused);
      expect(performance.now() - startedMs).toBeLessThan(1_000);
      await rig.streams.ensure();
      await vi.waitFor(() => expect(liveRefusal(rig)).toBeUndefined(), within);
      expect(await rig.send("live", "back")).toEqual(stored);
      await rig.close();
    });

    test.each(["OTHER", ""])(
      "refuses events if a memory stream named %j has its subject",
      async (other) => {
        const rig = await startRig(server, { watchEveryMs, ackTimeoutMs: 100 });
        const { streams } = await jetstreamManager(rig.link.connection);
        await streams.delete(liveStream(rig));
        const name = other === "" ? liveStream(rig) : `${liveStream(rig)}_${other}`;
        await streams.add({
          name,
          subjects: [`${rig.settings.subjectPrefix}.live.>`],
          storage: StorageType.Memory,
        });
        await vi.waitFor(() => expect(liveRefusal(rig)).toBeDefined(), within);
        expect(await rig.send("live", "to memory")).toEqual(refused);
        await streams.delete(name);
        await rig.close();
      },
    );
  });

  test("is recognised by the settings of newer servers", () => {
    const [wanted] = wantedConfigs(streamSettings());
    const config = {
      ...wanted,
      max_msgs: -1,
      max_msgs_per_subject: -1,
      max_msg_size: -1,
    } as StreamConfig;
    const faultsWith = (more: object) => brokenPromises(wanted!, { ...config, ...more }, 524_800);
    expect(faultsWith({})).toEqual([]);
    expect(faultsWith({ persist_mode: "async" })).toEqual([
      "persist_mode is async: it acknowledges before it writes",
    ]);
    expect(faultsWith({ persist_mode: "default" })).toEqual([]);
    expect(faultsWith({ allow_msg_counter: true })).toHaveLength(1);
    const harmless = {
      allow_msg_ttl: true,
      allow_atomic: true,
      allow_rollup_hdrs: true,
      deny_delete: true,
      deny_purge: true,
      compression: "s2",
      placement: { tags: ["ssd"] },
      republish: { src: ">", dest: "copies.>" },
      first_seq: 1_000,
      subject_delete_marker_ttl: second,
    };
    expect(faultsWith(harmless)).toEqual([]);
  });
});
