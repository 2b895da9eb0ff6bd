import { writeFileSync } from "node:fs";
import path from "node:path";
import { DiscardPolicy, jetstreamManager, type StreamUpdateConfig } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { afterAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { shownPlace } from "../../../src/readers/effects/store/open.ts";
import { openedStore, startDatabases } from "../../kit/effects-databases.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { makeStreams, storeFrames } from "../../kit/stored-events.ts";
import { commitOf, personRow } from "../../readers/effects/store/row-kit.ts";
import { addProjects, erased, eventOf, frameOf, messagesIn } from "./erase-kit.ts";

const own = ["$JS.API.STREAM.MSG.DELETE.PENSTOCK_LIVE_0", "penstock.live.0.shop"];
const nats = await natsServerForFile({
  extraConfig: `authorization { users: [
    { user: all, password: all }
    { user: no-delete, password: x, permissions: { publish: { deny: "${own[0]}" } } }
    { user: no-store, password: x, permissions: { publish: { deny: "${own[1]}" } } }
  ] }`,
});
const urlOf = (user: string) => nats.url.replace("nats://", `nats://${user}@`);
const natsUrl = urlOf("all:all");
const live = "PENSTOCK_LIVE_0";
const ids = ["ada"];
const connection = await connect({ servers: nats.url, user: "all", pass: "all" });

afterAll(() => connection.close());

beforeEach(async () => {
  const manager = await jetstreamManager(connection);
  for await (const name of manager.streams.names()) await manager.streams.delete(name);
  await makeStreams(connection);
  await addProjects(connection);
  await storeFrames(connection, [
    frameOf([eventOf("ada"), eventOf("bob")]),
    frameOf([eventOf("ada")]),
  ]);
});

async function refusal(options: Partial<Parameters<typeof erased>[0]>): Promise<string> {
  const before = await messagesIn(connection, live);
  const reason = await erased({ natsUrl, ids, ...options }).then(
    () => "",
    ({ message }: Error) => message,
  );
  expect(await messagesIn(connection, live)).toEqual(before);
  return reason;
}

test.each([
  [{ deny_delete: true }, "its deny_delete is set"],
  [{ sealed: true }, "it is sealed"],
  [{ max_msgs_per_subject: 5 }, "it has a message limit"],
  [{ discard: DiscardPolicy.Old, max_bytes: 1_000_000 }, "it discards its oldest messages"],
])("erase rejects a stream with %j", async (change, reason) => {
  const manager = await jetstreamManager(connection);
  await manager.streams.update(live, change as Partial<StreamUpdateConfig>);
  expect(await refusal({})).toMatch(`cannot erase from ${live}: ${reason}`);
});

test.each([
  ["no-delete:x", "this user may not delete its messages"],
  ["no-store:x", "this user may not store messages in it"],
])("erase rejects the NATS user %s", async (user, reason) => {
  expect(await refusal({ natsUrl: urlOf(user) })).toMatch(`cannot erase from ${live}: ${reason}`);
});

test("erase rejects invalid arguments", async () => {
  expect(await refusal({ ids: [] })).toBe("erase: name the person: --distinct-id <id>");
  expect(await refusal({ ids: [" "] })).toBe("erase: a distinct id must not be blank");
  expect(await refusal({ project: "Shpo" })).toMatch(
    "erase: there is no project Shpo: did you mean shop? the projects are shop, ",
  );
  expect(await refusal({ yes: false })).toContain("Confirm with --yes");
  const file = path.join(temporaryFolder(), "none.sqlite");
  expect(await refusal({ place: { kind: "sqlite", file } })).toContain("--no-effects");
  const receipt = path.join(temporaryFolder(), "receipt");
  writeFileSync(receipt, "");
  expect(await refusal({ receipt })).toContain("the receipt cannot be written");
});

test("erase rejects an effects database of another installation", async () => {
  for (const databases of [await startDatabases("SQLite"), await startDatabases("PostgreSQL")]) {
    onTestFinished(() => databases.remove());
    const place = await databases.newDatabase();
    const store = await openedStore(place);
    onTestFinished(() => store.close());
    await store.commit(commitOf(0, { members: [personRow("ada", { projectId: "shop" })] }));
    await store.bindTo("another");
    const said = "PENSTOCK_SUBJECT_PREFIX=another, but this installation has penstock";
    for (const dryRun of [false, true])
      expect(await refusal({ place, dryRun })).toMatch(
        `erase: cannot open ${shownPlace(place)}: its events`,
      );
    expect(await refusal({ place })).toContain(said);
    expect(await store.members("shop", ["ada"])).toHaveLength(1);
  }
});

test("erase asks for confirmation by the project's name on a terminal", async () => {
  const yes = false;
  expect(await refusal({ yes, typed: "yes" })).toBe("erase: not confirmed: nothing was changed");
  const { err, out } = await erased({ natsUrl, ids, yes, typed: "shop" });
  expect(err).toContain(`Erase all events of this person from ${live}, PENSTOCK_HISTORICAL_0`);
  expect(out).toContain("2 events erased");
});

test("erase --dry-run counts events and changes nothing", async () => {
  const before = await messagesIn(connection, live);
  const { out } = await erased({ natsUrl, ids, dryRun: true, yes: false });
  expect(out).toContain("2 events would be erased: 2 messages scanned, 1 removed, 1 rewritten");
  expect(await messagesIn(connection, live)).toEqual(before);
});
