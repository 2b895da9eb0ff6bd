import { expect, test } from "vitest";
import { erasureAt } from "../../../../src/readers/effects/store/open.ts";
import { eventOf, frameOf } from "../../../commands/erase/erase-kit.ts";
import { dumpOf } from "../../../kit/effects-dumps.ts";
import { storeFrames } from "../../../kit/stored-events.ts";
import { describeWriter, type WriterRig } from "../writer/writer-kit.ts";

function tests(rig: WriterRig): void {
  const { connection, databases } = rig;

  test("removes exactly the rows of an erased project", async () => {
    const of = (projectId: string) => [
      frameOf(
        [
          eventOf("ada", {
            event: "$identify",
            kind: "identify",
            properties: { $anon_distinct_id: "a1" },
            set: { plan: "pro" },
          }),
          eventOf("ada", {
            event: "$groupidentify",
            kind: "group_identify",
            properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 3 } },
          }),
          eventOf("eve", { properties: { $groups: { company: "acme" } } }),
        ],
        { projectId },
      ),
    ];
    await storeFrames(connection, of("other"));
    const alone = await rig.undisturbed();
    await storeFrames(connection, of("shop"));
    const place = await databases.newDatabase();
    const both = await rig.undisturbed({}, place);
    expect(both.join()).toContain('"shop"');
    const erasure = await erasureAt(place);
    expect(await erasure.hasProject("shop")).toBe(true);
    const erased = await erasure.eraseProject("shop");
    expect(await erasure.hasProject("shop")).toBe(false);
    expect(await erasure.hasProject("other")).toBe(true);
    expect(erased).toMatchObject({ persons: 2, groups: 1 });
    expect(erased.rows).toBeGreaterThan(5);
    const reader = await rig.openReader(place);
    const left = await dumpOf(reader);
    expect(left.join()).not.toContain('"shop"');
    const ofOther = (lines: readonly string[]) => lines.filter((line) => line.includes('"other"'));
    expect(ofOther(left)).toEqual(ofOther(alone));
    expect(await reader.totals()).toMatchObject({ persons: 2, groups: 1 });
    expect(await erasure.eraseProject("shop")).toMatchObject({ persons: 0, groups: 0, rows: 0 });
  });
}

await describeWriter("SQLite", tests);
await describeWriter("PostgreSQL", tests);
