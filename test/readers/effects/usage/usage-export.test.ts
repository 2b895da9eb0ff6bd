import { expect, test } from "vitest";
import type { UsageDay } from "../../../../src/readers/effects/store/port.ts";
import { usageExport } from "../../../../src/readers/effects/usage/usage-export.ts";

const days: UsageDay[] = [
  { day: "2026-11-21", lane: "historical", class: "alias", events: 2, duplicates: 0 },
  { day: "2026-11-21", lane: "live", class: "identified", events: 7, duplicates: 1 },
  { day: "2026-11-22", lane: "live", class: "identified", events: 9, duplicates: 0 },
];
const options = {
  projectId: "shop",
  source: "penstock.example.com",
  closedBefore: "2026-11-22",
  revision: 1,
};

test("the usage export has one line per closed day, stream and class", () => {
  const lines = usageExport(days, options).map((line) => JSON.parse(line) as unknown);
  expect(lines).toMatchObject([
    {
      id: "shop/2026-11-21/historical/alias/1",
      data: { events: 2, duplicates: 0, billable: false },
    },
    {
      specversion: "1.0",
      id: "shop/2026-11-21/live/identified/1",
      source: "penstock.example.com",
      type: "penstock.usage",
      subject: "shop",
      time: "2026-11-21T00:00:00Z",
      data: { day: "2026-11-21", lane: "live", class: "identified", events: 7, billable: true },
    },
  ]);
});

test("the lines of a new revision of the usage export have new ids", () => {
  const again = usageExport(days, { ...options, revision: 2 });
  expect(again[0]).toContain('"id":"shop/2026-11-21/historical/alias/2"');
});
