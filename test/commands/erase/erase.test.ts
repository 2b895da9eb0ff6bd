import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { appliedOf, rebuild } from "../../../src/readers/effects/writer/rebuild.ts";
import { verify } from "../../../src/readers/effects/writer/verify.ts";
import { apart, dumpOf, untilApplied } from "../../kit/effects-dumps.ts";
import { makeStreams, storeFrames, type TestFrame } from "../../kit/stored-events.ts";
import {
  deleteStreams,
  describeWriter,
  type WriterRig,
} from "../../readers/effects/writer/writer-kit.ts";
import {
  addProjects,
  erased,
  eventOf,
  exported,
  frameOf,
  messagesIn,
  project,
  sharedFrameOf,
} from "./erase-kit.ts";

const live = "PENSTOCK_LIVE_0";
const secret = "ada-lovelace-1815";

function someFrames(): TestFrame[] {
  const anon = { $anon_distinct_id: `anon-${secret}` };
  return [
    frameOf([eventOf(`anon-${secret}`), eventOf("bob", { set: { plan: "pro" } })]),
    frameOf([
      eventOf("bob"),
      eventOf(secret, { event: "$identify", kind: "identify", properties: anon, set: { n: 1 } }),
      eventOf("eve", { properties: { $groups: { company: "acme" } } }),
    ]),
    frameOf([eventOf(secret)]),
    sharedFrameOf([eventOf(secret), eventOf("bob")], [eventOf(secret)]),
    frameOf([eventOf("eve"), eventOf(secret)], { lane: "historical" }),
    frameOf([eventOf("last")]),
  ];
}

function tests(rig: WriterRig): void {
  const { connection, nats, databases } = rig;

  test("an erased person is removed from the streams and the database", async () => {
    await addProjects(connection);
    const frames = someFrames();
    await storeFrames(connection, frames);
    const place = await databases.newDatabase();
    const store = await rig.openStore(place);
    const writer = rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    const before = await dumpOf(store.reader);
    expect(before.join()).toContain(secret);
    const result = await erased({ natsUrl: nats.url, ids: [`anon-${secret}`], place });
    expect(result.out).toContain("5 events erased");
    expect(result.err).toMatch(/writing the receipt to \/.*/);
    expect(result.out).toContain("removed 1 person and 1 link from");

    const kept = (await messagesIn(connection, live)).flatMap(({ lines }) => lines);
    expect(kept.filter((line) => line.includes(`"project_id":"${project}"`)).join()).not.toContain(
      secret,
    );
    const uuids = kept.map((line) => (JSON.parse(line) as { uuid: string }).uuid);
    const others = frames
      .filter(({ lane }) => lane === "live")
      .flatMap(({ projectId, events }) =>
        events.filter(
          ({ distinctId }, at) => !distinctId.includes(secret) || (projectId === "~" && at === 2),
        ),
      );
    expect(uuids.sort()).toEqual(others.map(({ uuid }) => uuid).sort());

    await storeFrames(connection, [frameOf([eventOf("bob", { set: { later: true } })])]);
    await untilApplied(store.reader, connection);
    const after = await dumpOf(store.reader);
    const own = after.filter((line) => line.includes(`"project_id":"${project}"`));
    expect(own.join()).not.toContain(secret);
    expect(await store.reader.incidents(10)).toEqual([]);
    const usage = await store.reader.usage(project, { from: "2026-01-01", to: "2027-01-01" });
    expect(usage.reduce((sum, one) => sum + one.events, 0)).toBe(12);
    expect(usage.reduce((sum, one) => sum + one.duplicates, 0)).toBe(0);
    await writer.close();
    expect(JSON.parse(readFileSync(result.receipt, "utf8"))).toMatchObject({ project });
  });

  test("an erased person's effects on others are the same in a rebuild", async () => {
    await addProjects(connection);
    const link = { event: "$identify", kind: "identify" } as const;
    const identify = (distinctId: string, anonymous: string, more = {}) =>
      eventOf(distinctId, { ...link, properties: { $anon_distinct_id: anonymous }, ...more });
    const group = { $group_type: "company", $group_key: "acme" };
    const grouped = (distinctId: string, $group_set: object) =>
      eventOf(distinctId, {
        event: "$groupidentify",
        kind: "group_identify",
        properties: { ...group, $group_set },
      });
    const frames = [
      frameOf([identify(secret, `anon-${secret}`), grouped(secret, { plan: "enterprise" })]),
      frameOf([grouped("cid", { seats: 3 }), identify("dan", "anon-dan")]),
      frameOf([identify("bob", secret, { set: { bobs_plan: "pro" } })]),
      frameOf([
        eventOf("dan", {
          event: "$create_alias",
          kind: "alias",
          properties: { alias: secret },
          set: { n: 1 },
        }),
      ]),
      frameOf([eventOf(secret, { properties: { $groups: { company: "acme" } } })]),
    ];
    await storeFrames(connection, frames);
    const place = await databases.newDatabase();
    const store = await rig.openStore(place);
    const writer = rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    await writer.close();
    await erased({ natsUrl: nats.url, ids: [secret], place });

    const lines = (await messagesIn(connection, live)).flatMap((message) => message.lines);
    expect(lines.join()).not.toContain(secret);
    const into = await rig.openStore();
    const verified = await verify({
      connection,
      prefix: "penstock",
      reader: store.reader,
      into,
      erasedProjects: new Set([project]),
    });
    expect(verified).toMatchObject({ missing: 0, differences: [] });
    expect(verified.explained.join()).toContain("differ because of an erasure");
    const rebuilt = into.reader;
    expect(await rebuilt.group({ projectId: project, type: "company", key: "acme" })).toMatchObject(
      {
        propertiesJson: '{"plan":"enterprise","seats":3}',
      },
    );
    const bob = await rebuilt.personByDistinctId(project, "bob");
    expect(bob).toMatchObject({ known: true, propertiesJson: '{"bobs_plan":"pro"}' });
    expect(await rebuilt.personByDistinctId(project, "dan")).toMatchObject({ known: true });
    expect((await dumpOf(rebuilt)).join()).not.toContain(secret);
  });

  test("later readers get the same result as without the erased person", async () => {
    await addProjects(connection);
    const frames = someFrames();
    await storeFrames(connection, frames.slice(0, 2));
    const behind = await databases.newDatabase();
    const earlier = await rig.openStore(behind);
    const first = rig.startWriter({ store: earlier });
    await untilApplied(earlier.reader, connection);
    await first.close();
    await earlier.close();
    await storeFrames(connection, frames.slice(2));
    await erased({ natsUrl: nats.url, ids: [secret], place: behind, allowBehind: true });

    const store = await rig.openStore(behind);
    const second = rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    await second.close();
    expect(await store.reader.incidents(10)).toEqual([]);
    const caughtUp = peopleOf(await dumpOf(store.reader));

    const place = await databases.newDatabase();
    const dump = await rig.undisturbed({}, place);
    expect(peopleOf(dump)).toEqual(caughtUp);
    const again = await rig.openStore();
    const applied = await appliedOf(await rig.openReader(place));
    await rebuild({ connection, prefix: "penstock", applied, into: again });
    expect(apart(await dumpOf(again.reader), dump)).toEqual([]);
    // The erased events are not reported as missing.
    const all = await appliedOf(store.reader);
    const rebuilt = await rig.openStore();
    const { missing } = await rebuild({
      connection,
      prefix: "penstock",
      applied: all,
      into: rebuilt,
    });
    expect(missing).toBe(0);
    expect(peopleOf(await dumpOf(rebuilt.reader))).toEqual(caughtUp);

    await deleteStreams(connection, nats);
    await makeStreams(connection);
    await storeFrames(connection, withoutPerson(frames));
    expect(apart(dump, await rig.undisturbed())).toEqual([]);
  });

  test("a frame that is rewritten repeatedly leaves no erased data on disk", async () => {
    await addProjects(connection);
    const secrets = ["first-secret-id", "second-secret-id", "third-secret-id"];
    const some = () => secrets.map((id) => eventOf(id));
    const kept = eventOf("bob");
    await storeFrames(connection, [frameOf([...some(), kept]), frameOf(some()), frameOf(some())]);
    const onDisk = (id: string) => filesWith(nats.storeDir, id);
    for (const id of secrets) {
      await expect.poll(() => onDisk(id)).toBe(1);
      await erased({ natsUrl: nats.url, ids: [id] });
      await expect.poll(() => onDisk(id)).toBe(0);
      expect((await exported(nats.url)).lines).toHaveLength(
        1 + 3 * (secrets.length - 1 - secrets.indexOf(id)),
      );
    }
    const store = await rig.openStore();
    rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    const positions = await store.reader.positions();
    const position = positions.find(({ stream }) => stream === live);
    expect(await store.reader.incidents(10)).toEqual([]);
    expect(position?.trail[0]?.sequence).toBe(1);
    expect((await dumpOf(store.reader)).filter((line) => line.includes("usage_daily"))).toEqual([
      expect.stringContaining('"events":1,"duplicates":0'),
    ]);
  });
}

function filesWith(folder: string, text: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true });
  return files.filter(
    (file) => file.isFile() && readFileSync(path.join(file.parentPath, file.name)).includes(text),
  ).length;
}

function peopleOf(dump: readonly string[]): string[] {
  return dump.filter((line) => /^\{"table":"(?:persons|group|person_links)/.test(line));
}

function withoutPerson(frames: readonly TestFrame[]): TestFrame[] {
  return frames.flatMap((frame) => {
    const text = String(frame.text ?? "");
    const lines = text.split("\n").filter((line) => !isErased(line, project));
    const events = frame.events.filter(({ distinctId }) => !distinctId.includes(secret));
    if (text !== "") return [{ ...frame, events, text: lines.join("\n") }];
    return events.length === 0 ? [] : [{ ...frame, events }];
  });
}

function isErased(line: string, projectId: string): boolean {
  return line.includes(secret) && line.includes(`"project_id":"${projectId}"`);
}

await describeWriter("SQLite", tests);
await describeWriter("PostgreSQL", tests);
