import { expect, test } from "vitest";
import {
  SpikeLog,
  spikeAnnouncement,
} from "../../../../src/readers/effects/spikes/announcement.ts";
import type { OutboxRow } from "../../../../src/readers/effects/types.ts";

const startedAtMs = Date.UTC(2026, 10, 22, 12);

function row(subject: string, change: "began" | "ended"): OutboxRow {
  const endedAtMs = change === "ended" ? startedAtMs + 600_000 : undefined;
  return spikeAnnouncement(
    "penstock",
    {
      projectId: "shop",
      subject,
      startedAtMs,
      endedAtMs,
      peakPerMinute: 900,
      baseline: 10.5,
      threshold: 500,
      events: 1_200,
    },
    change,
  );
}

function logOf(monotonicMs: () => number) {
  const lines: [Record<string, unknown>, string][] = [];
  const info = (fields: object, message: string): void =>
    void lines.push([fields as Record<string, unknown>, message]);
  return { lines, log: new SpikeLog({ info }, monotonicMs) };
}

test("the start and the end of a spike are logged", () => {
  const { lines, log } = logOf(() => 0);
  log.committed([row("project", "began"), row("ada@example.com", "ended")]);
  const figures = { peakPerMinute: 900, baseline: 10.5, threshold: 500, events: 1_200 };
  const startedAt = "2026-11-22T12:00:00.000Z";
  expect(lines).toEqual([
    [{ project: "shop", of: "the project", startedAt, ...figures }, "spike began"],
    [
      {
        project: "shop",
        of: "a distinct id",
        startedAt,
        ...figures,
        endedAt: "2026-11-22T12:10:00.000Z",
      },
      "spike ended",
    ],
  ]);
});

test("the number of log lines about spikes is limited", () => {
  let nowMs = 0;
  const { lines, log } = logOf(() => nowMs);
  for (let n = 0; n < 100; n++) log.committed([row(`id-${n}`, "began")]);
  expect(lines).toHaveLength(30);
  nowMs = 60_000;
  log.committed([row("project", "ended")]);
  expect(lines).toHaveLength(31);
  expect(lines[30]?.[0]).toMatchObject({ beforeUnsaid: 70 });
});
