import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { untilApplied } from "../../kit/effects-dumps.ts";
import { storeFrames } from "../../kit/stored-events.ts";
import { describeWriter, type WriterRig } from "../../readers/effects/writer/writer-kit.ts";
import { addProjects, erased, eventOf, frameOf, messagesIn } from "./erase-kit.ts";

const live = "PENSTOCK_LIVE_0";
const noPerson = "no person and no event of shop has the distinct id usr-1\n";

function identify(distinctId: string, anonymous: string) {
  return eventOf(distinctId, {
    event: "$identify",
    kind: "identify",
    properties: { $anon_distinct_id: anonymous },
  });
}

function tests(rig: WriterRig): void {
  const { connection, nats, databases } = rig;
  const natsUrl = nats.url;

  const linesIn = async (stream: string) =>
    (await messagesIn(connection, stream)).flatMap(({ lines }) => lines);

  async function apply(place: Awaited<ReturnType<typeof databases.newDatabase>>): Promise<void> {
    const store = await rig.openStore(place);
    const writer = rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    await writer.close();
    await store.close();
  }

  test.each(["live", "historical"] as const)(
    "erase removes nothing if a link from the %s stream is unapplied",
    async (lane) => {
      await addProjects(connection);
      await storeFrames(connection, [frameOf([eventOf("bob")])]);
      const place = await databases.newDatabase();
      await apply(place);
      const link = frameOf([identify("eve2", "anon-eve2")], { lane });
      await storeFrames(connection, [link, frameOf([eventOf("anon-eve2")])]);
      const options = { natsUrl, ids: ["eve2"], place };
      const stored = [await linesIn(live), await linesIn("PENSTOCK_HISTORICAL_0")];

      const { message } = await erased(options).then(
        () => expect.unreachable(),
        (error: Error) => error,
      );
      expect(message).toContain("erase: the effects lag behind the streams by 2 messages (");
      expect(message).toContain("Nothing was removed. No effects process runs on this database");
      expect(message).toContain("--allow-behind");
      const dry = await erased({ ...options, dryRun: true });
      expect(dry.err).toContain("the effects lag behind the streams by 2 messages (");
      expect(dry.err).toContain("an erasure would be rejected");
      expect(dry.out).toContain("1 event would be erased");
      expect([await linesIn(live), await linesIn("PENSTOCK_HISTORICAL_0")]).toEqual(stored);

      await apply(place);
      const whole = await erased(options);
      expect(whole.out).toContain("shop: 2 ids: eve2, anon-eve2\n");
      expect(whole.out).toContain("2 events erased");
      expect(whole.out).toContain("removed 1 person and 1 link from");
      expect([await linesIn(live), await linesIn("PENSTOCK_HISTORICAL_0")].join()).not.toContain(
        "eve2",
      );
      expect(JSON.parse(readFileSync(whole.receipt, "utf8"))).toMatchObject({ unapplied: [] });
    },
  );

  test("erase --allow-behind lists the unapplied messages in its receipt", async () => {
    await addProjects(connection);
    const place = await databases.newDatabase();
    await apply(place);
    const frames = [frameOf([identify("eve2", "anon-eve2")]), frameOf([eventOf("anon-eve2")])];
    await storeFrames(connection, frames);
    const options = { natsUrl, ids: ["eve2"], place, allowBehind: true };
    const { out, err, receipt } = await erased(options);
    expect(err).toContain(`the effects lag behind the streams by 2 messages (${live}: 0 of 2)`);
    expect(out).toContain("1 event erased");
    expect(out).toContain(`not reached: other ids of the person in messages 1 to 2 of ${live}`);
    const unapplied = [{ stream: live, appliedTo: 0, end: 2 }];
    expect(JSON.parse(readFileSync(receipt, "utf8"))).toMatchObject({ unapplied });
    expect(await linesIn(live)).toHaveLength(1);
  });

  test("erase waits for an effects process that is catching up", async () => {
    await addProjects(connection);
    const place = await databases.newDatabase();
    const store = await rig.openStore(place);
    const frames = [frameOf([identify("eve2", "anon-eve2")]), frameOf([eventOf("anon-eve2")])];
    await storeFrames(connection, frames);
    const erasure = erased({ natsUrl, ids: ["eve2"], place });
    rig.startWriter({ store });
    expect((await erasure).out).toContain("2 events erased");
    expect(await linesIn(live)).toEqual([]);
  });

  test("erase also removes events of an id that is linked meanwhile", async () => {
    await addProjects(connection);
    await storeFrames(connection, [frameOf([eventOf("eve2"), eventOf("bob")])]);
    const place = await databases.newDatabase();
    const store = await rig.openStore(place);
    rig.startWriter({ store });
    await untilApplied(store.reader, connection);
    const later = [frameOf([identify("eve2", "anon-eve2")]), frameOf([eventOf("anon-eve2")])];
    let isDue = true;
    const { err, out } = await erased({
      natsUrl,
      ids: ["eve2"],
      place,
      stepped: async (step) => {
        if (!isDue || step !== "streams") return;
        isDue = false;
        await storeFrames(connection, later);
        await untilApplied(store.reader, connection);
      },
    });
    expect(err).toContain(
      "ids that were linked to the person during the erasure, and are erased too: anon-eve2",
    );
    expect(out).toContain("3 events erased");
    expect((await linesIn(live)).join()).not.toContain("eve2");
  });

  test("a frame that an erasure has rewritten does not count as unapplied", async () => {
    await addProjects(connection);
    const shared = frameOf([eventOf("ada"), eventOf("bob"), eventOf("cleo")]);
    await storeFrames(connection, [shared, frameOf([eventOf("ada")])]);
    const place = await databases.newDatabase();
    await apply(place);
    for (const id of ["ada", "bob"]) {
      const { out } = await erased({ natsUrl, ids: [id], place });
      expect(out).toContain("removed 1 person");
    }
    expect(await linesIn(live)).toHaveLength(1);
  });

  test("erase reports an id that belongs to no person and no event", async () => {
    await addProjects(connection);
    await storeFrames(connection, [frameOf([eventOf("ada")])]);
    const place = await databases.newDatabase();
    await apply(place);
    for (const dryRun of [true, false]) {
      const { out } = await erased({ natsUrl, ids: ["usr-1"], place, dryRun });
      expect(out).toContain(noPerson);
    }
    const alone = await erased({ natsUrl, ids: ["usr-1", "usr-2"] });
    expect(alone.out).toContain("no event of shop has any of the distinct ids usr-1, usr-2\n");
    const options = { natsUrl, ids: ["ada"], place };
    expect((await erased(options)).out).not.toContain("no person and no event");
    expect((await erased(options)).out).toContain("no person and no event of shop has the");
  });
}

await describeWriter("SQLite", tests);
