import { expect, test } from "vitest";
import { EffectsMetrics } from "../../../../src/readers/effects/metrics/effects-metrics.ts";
import { FencedError } from "../../../../src/readers/effects/store/port.ts";
import { CommitChain } from "../../../../src/readers/effects/writer/transaction.ts";
import { commitOf, linkRow, positionRow, project, rejectedRow } from "../store/row-kit.ts";

test("metrics count a commit only when it is stored", async () => {
  const metrics = new EffectsMetrics();
  const zero = await metrics.text();
  expect(zero).toContain('penstock_effects_rejected_total{reason="too_deep"} 0');
  expect(zero).toContain('penstock_effects_incidents_total{kind="expired_unread"} 0');

  let fault: Error | undefined;
  const commit = async (): Promise<void> => {
    if (fault !== undefined) throw fault;
  };
  const chain = new CommitChain({ commit }, metrics);
  const row = { projectId: project, day: "2026-11-22", class: "identify" } as const;
  const changes = commitOf(0, {
    positions: [positionRow(9)],
    frames: { live: 5, historical: 0 },
    usage: [{ ...row, lane: "live", events: 7, duplicates: 2 }],
    rejected: [rejectedRow(1)],
    links: [linkRow(1, "a", "b")],
  });
  await chain.write(changes, false);
  fault = new FencedError("another writer");
  await expect(chain.write(changes, false)).rejects.toBe(fault);

  const text = await metrics.text();
  for (const line of [
    'penstock_effects_events_total{lane="live",class="identify"} 7',
    'penstock_effects_duplicates_total{lane="live"} 2',
    'penstock_effects_frames_total{lane="live"} 5',
    'penstock_effects_rejected_total{reason="too_deep"} 1',
    'penstock_effects_links_total{outcome="merged"} 1',
    'penstock_effects_commits_total{outcome="committed"} 1',
    'penstock_effects_commits_total{outcome="failed"} 1',
    "penstock_effects_commit_seconds_count 1",
  ])
    expect(text).toContain(`${line}\n`);
  expect(text).not.toContain(project);
});

test("metrics count a commit in pieces after its last piece", async () => {
  const metrics = new EffectsMetrics();
  let fault: Error | undefined;
  const commit = async (): Promise<void> => {
    if (fault !== undefined) throw fault;
  };
  const chain = new CommitChain({ commit }, metrics);
  const changes = commitOf(0, { links: [linkRow(1, "a", "b"), linkRow(2, "a", "c")] });
  const links = async (): Promise<string | undefined> =>
    /links_total{outcome="merged"} (\d+)/.exec(await metrics.text())?.[1];
  await chain.write(changes, true);
  fault = new Error("the database is away");
  await expect(chain.write(changes, false)).rejects.toBe(fault);
  fault = undefined;
  await chain.write(changes, true);
  chain.begin(0);
  await chain.write(changes, true);
  expect(await links()).toBe("0");
  await chain.write(changes, false);
  expect(await links()).toBe("4");
  const text = await metrics.text();
  expect(text).toContain('penstock_effects_commits_total{outcome="committed"} 1\n');
  expect(text).toContain("penstock_effects_commit_seconds_count 1\n");
});
