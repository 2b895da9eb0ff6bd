import { expect, test } from "vitest";
import { personUuid } from "../../../../src/readers/effects/people/person-uuid.ts";
import {
  all,
  commitOf,
  eventUuid,
  groupRow,
  linkRow,
  mergedRow,
  noon,
  personRow,
  positionRow,
  project,
  propertiesOf,
  rejectedRow,
  stampOf,
} from "./row-kit.ts";
import type { StoreRig } from "./store-rig.ts";

export function dumpTests(now: { readonly rig: StoreRig }): void {
  test("dumps rows sorted by bytes", async () => {
    const survivor = personRow("bob", {
      firstId: "Zoe",
      firstUuid: personUuid(project, "Zoe"),
      firstStamp: stampOf(0),
      mainId: "😀",
      idsTotal: 4,
      known: true,
      properties: propertiesOf({ plan: '"pro"', big: "12345678901234567890" }),
    });
    const usage = { projectId: project, day: "2026-11-22", lane: "live", class: "alias" } as const;
    const incident = {
      stream: "S",
      kind: "tail_lost",
      epoch: 1,
      sequence: 2,
      messages: 3,
      detail: "d",
    } as const;
    const parts = {
      members: [
        survivor,
        mergedRow("Zoe", "bob", { n: 0 }),
        mergedRow("😀", "Zoe"),
        mergedRow("\u{ffee}", "bob"),
        personRow("ann", { projectId: "Proj_z" }),
      ],
      links: [linkRow(2, "b", "c"), linkRow(1, "z", "a")],
      groups: [groupRow("b"), groupRow("B", { properties: propertiesOf({ n: "1.0" }) })],
      groupTypes: [{ projectId: project, type: "company" }],
      groupMembers: [
        { projectId: project, type: "company", key: "b", distinctId: "bob", firstSeenAtMs: noon },
      ],
      rejected: [rejectedRow(1)],
      activeIds: [
        { projectId: project, day: "2026-11-22", registers: new Uint8Array(4), estimate: 3 },
      ],
      spikes: [
        {
          projectId: project,
          subject: "project",
          startedAtMs: noon,
          endedAtMs: undefined,
          peakPerMinute: 1,
          baseline: 0.5,
          threshold: 2,
          events: 3,
        },
      ],
      incidents: [incident],
    };
    const first = { ...parts, usage: [{ ...usage, events: 1, duplicates: 0 }] };
    await now.rig.store.commit(commitOf(0, first));
    await now.rig.store.commit(
      commitOf(1, {
        positions: [positionRow(3)],
        members: [{ ...survivor, person: { ...survivor.person!, version: 9 } }],
        usage: [{ ...usage, events: 2, duplicates: 1 }],
      }),
    );
    const uuid = personUuid(project, "Zoe");
    const person = `"known":true,"created_at_ms":${noon + 1},"last_seen_at_ms":${noon}`;
    const other = personUuid("Proj_z", "ann");
    const inProject = `"project_id":"proj_a"`;
    const company = `${inProject},"type":"company"`;
    expect(await all(now.rig.store.reader.dump())).toEqual([
      `{"table":"persons","project_id":"Proj_z","uuid":"${other}","main_distinct_id":"ann","distinct_ids":["ann"],"known":false,"created_at_ms":${noon + 1},"last_seen_at_ms":${noon},"properties":{}}`,
      `{"table":"persons",${inProject},"uuid":"${uuid}","main_distinct_id":"😀","distinct_ids":["Zoe","bob","\u{ffee}","😀"],${person},"properties":{"big":12345678901234567890,"plan":"pro"}}`,
      `{"table":"person_links",${inProject},"at_ms":${noon + 1},"event_uuid":"${eventUuid(1)}","a":"z","b":"a","kind":"identify","outcome":"merged"}`,
      `{"table":"person_links",${inProject},"at_ms":${noon + 2},"event_uuid":"${eventUuid(2)}","a":"b","b":"c","kind":"identify","outcome":"merged"}`,
      `{"table":"groups",${company},"key":"B","created_at_ms":${noon},"updated_at_ms":${noon + 1},"properties":{"n":1.0}}`,
      `{"table":"groups",${company},"key":"b","created_at_ms":${noon},"updated_at_ms":${noon + 1},"properties":{}}`,
      `{"table":"group_types",${company}}`,
      `{"table":"group_members",${company},"key":"b","distinct_id":"bob","first_seen_at_ms":${noon}}`,
      `{"table":"usage_daily",${inProject},"day":"2026-11-22","lane":"live","class":"alias","events":3,"duplicates":1}`,
      `{"table":"active_ids",${inProject},"day":"2026-11-22","estimate":3}`,
      `{"table":"spikes",${inProject},"subject":"project","started_at_ms":${noon},"ended_at_ms":null,"peak_per_minute":1,"baseline":0.5,"threshold":2,"events":3}`,
      `{"table":"rejected",${inProject},"at_ms":${noon + 1},"event_uuid":"${eventUuid(1)}","reason":"too_deep","detail":"$set.deep 1"}`,
      `{"table":"rejected_totals",${inProject},"total":1}`,
      `{"table":"incidents","stream":"S","epoch":1,"sequence":2,"kind":"tail_lost","messages":3,"detail":"d"}`,
    ]);
  });
}
