import { expect, test } from "vitest";

// The page's scripts are not TypeScript, so they are imported by URL.
const script = new URL("../../src/live/page/effects.js", import.meta.url).href;
const { effectsRows } = (await import(script)) as {
  effectsRows: (effects: object, project: string) => [string, string][];
};

const totals = { persons: 12_345, groups: 2, open_spikes: 0, rejected: 0, incidents: 0 };
const level = { totals, lagSeconds: 0, lagMessages: 0, usage: [] };

test("the live page shows no lag of the effects if everything is applied", () => {
  expect(effectsRows(level, "")).toEqual([
    ["People", "12,345"],
    ["Groups", "2"],
    ["Open spikes", "0"],
    ["Lag", "none"],
  ]);
});

test("the live page shows the usage of the watched project", () => {
  const usage = [
    { project: "other", billable: 9, historical: 9, duplicates: 9 },
    { project: "shop", billable: 1_500, historical: 0, duplicates: 2 },
  ];
  const rows = effectsRows({ ...level, usage }, "shop");
  expect(rows).toContainEqual(["Billable today", "1,500"]);
  expect(rows).toContainEqual(["Duplicates today", "2"]);
  expect(rows.map(([words]) => words)).not.toContain("Historical today");
  expect(effectsRows({ ...level, usage }, "__proto__")).toEqual(effectsRows(level, ""));
});

test("the live page shows a lag, unknown values, and errors of the effects", () => {
  const behind = { ...level, lagSeconds: 65.2, lagMessages: 1 };
  expect(effectsRows(behind, "")).toContainEqual(["Lag", "1 message, 1 min"]);
  const unknown = { ...level, lagSeconds: null, lagMessages: null };
  expect(effectsRows(unknown, "")).toContainEqual(["Lag", "unknown"]);
  const bad = { ...level, totals: { ...totals, rejected: 3, incidents: 1 } };
  expect(effectsRows(bad, "")).toContainEqual(["Not applied", "3"]);
  expect(effectsRows({ usage: [] }, "")).toEqual([]);
});
