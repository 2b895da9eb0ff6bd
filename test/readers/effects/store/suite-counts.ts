import { expect, test } from "vitest";
import {
  requireInstallation,
  takeForInstallation,
} from "../../../../src/readers/effects/store/installation.ts";
import type { Position, RejectedRow } from "../../../../src/readers/effects/types.ts";
import type { TrailEntry } from "../../../../src/readers/stream/resume.ts";
import {
  all,
  commitOf,
  noon,
  page,
  positionRow,
  project,
  rejectedRow,
  wholeYear,
} from "./row-kit.ts";
import type { StoreRig } from "./store-rig.ts";

export function countTests(now: { readonly rig: StoreRig }): void {
  test("belongs to one installation", async () => {
    const { store } = now.rig;
    const { reader } = store;
    await store.commit(commitOf(0, { positions: [positionRow(1)] }));
    const [prefix, other] = ["penstock", "other_live_1"];
    const shown = "the database";
    const refusal = `open the database: its events are from the installation with PENSTOCK_SUBJECT_PREFIX=${prefix}, but this installation has ${other}. Set`;
    const refused = async (): Promise<void> => {
      const taken = takeForInstallation(store, { prefix: other, shown });
      await expect(taken).rejects.toThrow(refusal);
    };
    await refused();
    expect(await reader.installation()).toBeUndefined();
    await takeForInstallation(store, { prefix, shown });
    expect(await reader.installation()).toBe(prefix);
    // Simulates a changed prefix. The stored prefix decides, and is written only once.
    await store.bindTo(other);
    await refused();
    await requireInstallation(reader, { prefix, shown });
  });

  test("adds usage to the sums by day, lane and class", async () => {
    const base = { projectId: project, day: "2026-11-22", lane: "live", class: "alias" } as const;
    const usage = [
      { ...base, events: 2, duplicates: 1 },
      { ...base, lane: "historical", events: 5, duplicates: 0 },
      { ...base, class: "survey", events: 7, duplicates: 0 },
      { ...base, day: "2026-11-23", events: 9, duplicates: 9 },
    ] as const;
    await now.rig.store.commit(commitOf(0, { usage }));
    await now.rig.store.commit(commitOf(1, { usage: [{ ...base, events: 40, duplicates: 2 }] }));
    const rows = await now.rig.store.reader.usage(project, {
      from: "2026-11-22",
      to: "2026-11-22",
    });
    expect(
      rows.map(({ lane, class: usageClass, events, duplicates }) => [
        lane,
        usageClass,
        events,
        duplicates,
      ]),
    ).toEqual([
      ["historical", "alias", 5, 0],
      ["live", "alias", 42, 3],
      ["live", "survey", 7, 0],
    ]);
    expect(await now.rig.store.reader.usage(project, wholeYear)).toHaveLength(4);
  });

  test("stores the last total of a project's large properties", async () => {
    const { store } = now.rig;
    expect(await store.largeProperties()).toEqual([]);
    const other = { projectId: "proj_b", bytes: 5_000_000_000 };
    const row = { projectId: project, bytes: 70_000 };
    await store.commit(commitOf(0, { largeProperties: [row, other] }));
    await store.commit(commitOf(1, { largeProperties: [{ ...row, bytes: 0 }] }));
    const rows = await store.largeProperties();
    expect(new Set(rows)).toEqual(new Set([{ ...row, bytes: 0 }, other]));
  });

  test("lists each project with applied events once, sorted", async () => {
    expect(await now.rig.store.reader.projects()).toEqual([]);
    const base = { lane: "live", class: "alias", events: 1, duplicates: 0 } as const;
    const usage = ["shop", "Zoo", "app", "shop"].map((projectId, n) => ({
      ...base,
      projectId,
      day: `2026-11-2${n}`,
    }));
    await now.rig.store.commit(commitOf(0, { usage }));
    expect(await now.rig.store.reader.projects()).toEqual(["Zoo", "app", "shop"]);
  });

  test("replaces sketches, spikes and project activity", async () => {
    const registers = Uint8Array.from({ length: 16_384 }, (_, n) => n % 64);
    const active = { projectId: project, day: "2026-11-22", registers, estimate: 12.5 };
    const spike = {
      projectId: project,
      subject: "project",
      startedAtMs: noon,
      endedAtMs: undefined,
      peakPerMinute: 900,
      baseline: 10.25,
      threshold: 500,
      events: 1_800,
    };
    const hot = { ...spike, subject: "ann", endedAtMs: noon + 60_000 };
    const activity = { projectId: project, state: '{"a":1}' };
    await now.rig.store.commit(
      commitOf(0, { activeIds: [active], spikes: [spike, hot], activity: [activity] }),
    );
    expect(
      await now.rig.store.activeIds([active, { projectId: project, day: "2026-11-23" }]),
    ).toEqual([active]);
    const { reader } = now.rig.store;
    expect((await reader.spikes(project, noon, page)).results).toEqual([hot, spike]);
    expect((await reader.totals()).openSpikes).toBe(1);
    const next = { ...active, estimate: 13, registers: registers.slice().fill(1) };
    const ended = { ...spike, endedAtMs: noon + 120_000, events: 2_000 };
    const state = '{"a":2}';
    await now.rig.store.commit(
      commitOf(1, {
        activeIds: [next],
        spikes: [ended],
        activity: [{ projectId: project, state }],
      }),
    );
    expect(await now.rig.store.activeIds([active])).toEqual([next]);
    expect(await now.rig.store.activity([project, "proj_b"])).toEqual([
      { projectId: project, state },
    ]);
    expect((await reader.totals()).openSpikes).toBe(0);
    expect((await reader.spikes(project, noon, page)).results).toEqual([hot, ended]);
    expect((await reader.spikes(project, noon + 1, page)).results).toEqual([]);
    const one = await reader.spikes(project, noon, { ...page, limit: 1 });
    expect(one).toEqual({ results: [hot], next: expect.any(String) });
    const rest = await reader.spikes(project, noon, { ...page, limit: 1, after: one.next });
    expect(rest).toEqual({ results: [ended], next: undefined });
    expect((await reader.spikes(project, noon, { ...page, after: "?" })).results).toEqual([]);
    expect(await now.rig.store.reader.activePeople(project, wholeYear)).toEqual([
      { day: "2026-11-22", estimate: 13 },
    ]);
  });

  test("lists rejections and incidents, newest first", async () => {
    const rejected = [
      rejectedRow(1),
      rejectedRow(1, { reason: "name_too_long" }),
      rejectedRow(2, { projectId: "proj_b" }),
    ];
    const incident = {
      stream: "PENSTOCK_LIVE_0",
      kind: "tail_lost",
      epoch: 1,
      sequence: 9,
      messages: 3,
      detail: "walked back",
    } as const;
    const incidents = [incident, { ...incident, kind: "stream_made_anew", epoch: 2 } as const];
    await now.rig.store.commit(commitOf(0, { rejected: rejected.slice(0, 1), incidents }));
    await now.rig.store.commit(commitOf(1, { rejected: rejected.slice(1) }));
    expect(await now.rig.store.reader.rejected(undefined, 2)).toEqual([rejected[2], rejected[1]]);
    expect(await now.rig.store.reader.rejected(project, 9)).toEqual([rejected[1], rejected[0]]);
    expect(await now.rig.store.reader.incidents(1)).toEqual([incidents[1]]);
    expect(await now.rig.store.reader.totals()).toMatchObject({ rejected: 3, incidents: 2 });
  });
}

function entry(sequence: number, messageId: string): TrailEntry {
  return { sequence, messageId, storedAtMs: noon + sequence };
}

export function progressTests(now: { readonly rig: StoreRig }): void {
  test("replaces the position of a stream together with its trail", async () => {
    const trail = [3, 5, 8].map((sequence) => entry(sequence, `m-${sequence}`));
    const other = positionRow(4, { stream: "PENSTOCK_HISTORICAL_0", lane: "historical" });
    const trails: Position["trail"][] = [
      trail,
      [...trail.slice(1), entry(9, "m-9")],
      [trail[1]!, entry(8, "new-8")],
      [],
    ];
    await now.rig.store.commit(commitOf(0, { positions: [other] }));
    for (const [n, one] of trails.entries()) {
      const position = positionRow(n + 10, { trail: one, epoch: n });
      await now.rig.store.commit(commitOf(n + 1, { positions: [position] }));
      expect(await now.rig.store.positions()).toEqual([other, position]);
      expect(await now.rig.store.reader.positions()).toEqual([other, position]);
    }
    const { stream, lane, partition, epoch, sequence, watermarkMs } = other;
    expect((await now.rig.store.reader.applied())[0]).toEqual({
      stream,
      lane,
      partition,
      epoch,
      sequence,
      watermarkMs,
    });
  });

  test("retains the newest rejections of each project", async () => {
    const rows = (from: number, count: number): RejectedRow[] =>
      Array.from({ length: count }, (_, n) => rejectedRow(from + n));
    const { store } = now.rig;
    const other = rejectedRow(1, { projectId: "proj_b" });
    await store.commit(commitOf(0, { rejected: [other, ...rows(1, 9_999)] }));
    await store.commit(commitOf(1, { rejected: rows(10_000, 3) }));
    await store.commit(commitOf(2, { rejected: rows(10_003, 10_500) }));
    const kept = await store.reader.rejected(project, 20_000);
    // Older rejections are deleted once per thousand. The last deletion occurs at 20,002
    // rejections.
    expect(kept.length).toBe(10_500);
    expect([kept.at(0), kept.at(-1)]).toEqual([rejectedRow(20_502), rejectedRow(10_003)]);
    expect(await store.reader.rejected("proj_b", 10)).toEqual([other]);
    expect(await store.reader.totals()).toMatchObject({ rejected: 20_503 });
    const dump = await all(store.reader.dump());
    expect(dump.filter((line) => line.includes("rejected_totals"))).toEqual([
      '{"table":"rejected_totals","project_id":"proj_a","total":20502}',
      '{"table":"rejected_totals","project_id":"proj_b","total":1}',
    ]);
  });

  test("stores new rejections after some were deleted by hand", async () => {
    const rows = (from: number, count: number): RejectedRow[] =>
      Array.from({ length: count }, (_, n) => rejectedRow(from + n));
    const { store } = now.rig;
    await store.commit(commitOf(0, { rejected: rows(1, 10_100) }));
    await now.rig.deleteAll("rejected");
    await store.commit(commitOf(1, { rejected: rows(10_101, 3) }));
    const kept = await store.reader.rejected(project, 10);
    expect(kept).toEqual([rejectedRow(10_103), rejectedRow(10_102), rejectedRow(10_101)]);
    expect(await store.reader.totals()).toMatchObject({ rejected: 10_103 });
  });

  test("returns the oldest outbox rows until they are published", async () => {
    const outbox = ["z", "a", "m"].map((messageId) => ({
      messageId,
      subject: "penstock.spike.proj_a",
      json: '{"a":1}',
    }));
    await now.rig.store.commit(commitOf(0, { outbox }));
    const { store } = now.rig;
    const [z, a] = await store.outbox(2, 0);
    expect([z, a]).toMatchObject(outbox.slice(0, 2));
    expect(await store.outbox(5, z!.id)).toMatchObject(outbox.slice(1));
    expect(await store.trimOutbox(3)).toBe(0);
    await store.published(["z", "unknown"]);
    expect(await store.outbox(5, 0)).toMatchObject(outbox.slice(1));
    expect(await store.trimOutbox(1)).toBe(1);
    expect(await store.outbox(5, 0)).toMatchObject(outbox.slice(2));
  });
}
