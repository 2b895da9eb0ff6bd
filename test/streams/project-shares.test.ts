// A project's share is what it has in the stream, whoever added it, and not what it ever added: who
// adds steadily what leaves as steadily is never refused, nor who has little beside others that
// have filled it; and who is over is let in soon after room appears.

import { DiscardPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type Msg } from "@nats-io/transport-node";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { WatchedShares } from "../../src/streams/project-shares.ts";
import { natsServerForFile } from "../../testkit/for-file.ts";
import { mebibyte } from "../../testkit/publisher-rig.ts";

const within = { timeout: 30_000, interval: 5 };
const streamBytes = 8 * mebibyte;
let prefixes = 0;

const server = await natsServerForFile();
const connection = await connect({ servers: server.url });

afterAll(() => connection.close());

interface Rig {
  readonly shares: WatchedShares;
  /** Messages of a mebibyte in all, told of as stored. */
  add(projectId: string, subject?: string): Promise<void>;
  /** As another gateway does: a mebibyte, where it is not said. */
  addElsewhere(
    projectId: string,
    what?: { messages?: number; messageBytes?: number },
  ): Promise<void>;
  /** Takes out what is under the subject. */
  purge(subject: string): Promise<void>;
  /** Fulfilled when a look that began after this call has ended. */
  looked(): Promise<void>;
}

async function rigOf(frameScope: "project" | "partition", everyMs = 10): Promise<Rig> {
  const subjectPrefix = `shares${prefixes++}`;
  const name = `${subjectPrefix}_LIVE_0`.toUpperCase();
  const { streams } = await jetstreamManager(connection);
  const live = `${subjectPrefix}.live.0`;
  await streams.add({
    name,
    subjects: [`${live}.*`],
    discard: DiscardPolicy.New,
    max_bytes: streamBytes,
    allow_direct: true,
  });
  let looks = 0;
  // A look begins with the stream as a whole, and goes on with subjects of it.
  const callback = (_: unknown, message: Msg): void =>
    void (message.string().includes("subjects_filter") || looks++);
  const subscription = connection.subscribe(`$JS.API.STREAM.INFO.${name}`, { callback });
  const shares = new WatchedShares({
    link: { connection, connected: true },
    config: { subjectPrefix, partitions: 1, frameScope, projectShare: 75 },
    projectsKnown: () => 4,
    everyMs,
  });
  onTestFinished(() => {
    shares.close();
    subscription.unsubscribe();
  });
  const bytes = mebibyte / 8;
  const publish = async (subject: string, messageBytes = bytes): Promise<void> => {
    await jetstream(connection).publish(`${live}.${subject}`, new Uint8Array(messageBytes));
  };
  return {
    shares,
    async add(projectId, subject = projectId) {
      for (let times = 0; times < 8; times++) {
        await publish(subject);
        shares.stored("live", projectId, bytes);
      }
    },
    async addElsewhere(projectId, { messages = 8, messageBytes = bytes } = {}) {
      for (let times = 0; times < messages; times++) await publish(projectId, messageBytes);
    },
    async purge(subject) {
      await streams.purge(name, { filter: `${live}.${subject}` });
    },
    async looked() {
      const before = looks;
      // One at a time: where the next one but one has begun, the next has ended.
      await expect.poll(() => looks, within).toBeGreaterThan(before + 1);
    },
  };
}

describe("what has left a stream fills no share", () => {
  test("what was added to a stream that never fills does not add up", async () => {
    const { shares, add, purge, looked } = await rigOf("project");
    for (let times = 0; times < 28; times++) {
      await add("steady");
      await looked();
      expect(shares.refusalOf("live", "steady"), `after ${times + 1} MiB`).toBe(undefined);
      await purge("steady");
    }
    expect(shares.projectsOver).toBe(0);
  });

  test("what other gateways have stored of a project counts", async () => {
    const { shares, addElsewhere } = await rigOf("project");
    for (let times = 0; times < 7; times++) await addElsewhere("flood");
    // Counted once it stores something here.
    for (const projectId of ["flood", "quiet"]) shares.stored("live", projectId, 1_000);
    await expect.poll(() => shares.refusalOf("live", "flood")?.code, within).toBe("project_full");
    expect(shares.refusalOf("live", "quiet")).toBe(undefined);
  });

  test("in messages of several projects the part of one that has long gone is not taken for what it once was", async () => {
    const { shares, add, purge, looked } = await rigOf("partition");
    for (let times = 0; times < 5; times++) await add("former", "~");
    await looked();
    await purge("~");
    for (let times = 0; times < 40; times++) {
      await add("present", "~");
      await looked();
      if (times < 34) await purge("~");
    }
    await add("quiet", "~");
    shares.stored("live", "former", 1_000);
    await looked();
    expect(shares.refusalOf("live", "former")).toBe(undefined);
    await expect.poll(() => shares.refusalOf("live", "present")?.code, within).toBe("project_full");
  });

  test("others that leave nothing free make nobody be over that has little", async () => {
    const { shares, add, addElsewhere, looked } = await rigOf("project");
    await add("small");
    for (let times = 0; times < 6; times++) await addElsewhere("filler");
    await expect(addElsewhere("filler")).rejects.toThrow("maximum bytes exceeded");
    for (let times = 0; times < 5; times++) {
      shares.stored("live", "small", 1_000);
      await looked();
      expect(shares.refusalOf("live", "small")).toBe(undefined);
    }
  });

  test("a few small messages before the large ones of others are not taken for as large", async () => {
    const { shares, addElsewhere, looked } = await rigOf("project");
    await addElsewhere("small", { messages: 6, messageBytes: 1_000 });
    for (let other = 0; other < 63; other++) await addElsewhere(`other-${other}`, { messages: 1 });
    for (let times = 0; times < 20; times++) {
      shares.stored("live", "small", 1_000);
      await looked();
      expect(shares.refusalOf("live", "small")).toBe(undefined);
    }
  });

  test("whoever is over is let in by the look of the next second, not by that of all", async () => {
    const { shares, addElsewhere, purge } = await rigOf("project", 3_600_000);
    for (let times = 0; times < 7; times++) await addElsewhere("flood");
    // As much as has the stream asked at once.
    shares.stored("live", "flood", mebibyte);
    shares.stored("live", "quiet", mebibyte / 8);
    await expect.poll(() => shares.refusalOf("live", "flood")?.code, within).toBe("project_full");
    await purge("flood");
    await expect.poll(() => shares.refusalOf("live", "flood"), within).toBe(undefined);
    expect(shares.projectsOver).toBe(0);
  });

  test("what is under way counts until it has an outcome", async () => {
    const { shares, add, looked } = await rigOf("project");
    for (let times = 0; times < 4; times++) await add("flood");
    // Four of eight are stored, of which six may be one project's.
    shares.addUnderWay("live", "flood", mebibyte);
    await looked();
    expect(shares.refusalOf("live", "flood")).toBe(undefined);
    shares.addUnderWay("live", "flood", 2 * mebibyte);
    expect(shares.refusalOf("live", "flood")?.code).toBe("project_full");
    expect(shares.refusalOf("live", "quiet")).toBe(undefined);
    shares.addUnderWay("live", "flood", -3 * mebibyte);
    await expect.poll(() => shares.refusalOf("live", "flood"), within).toBe(undefined);
  });
});
