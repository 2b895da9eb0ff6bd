import { describe, expect, test } from "vitest";
import {
  hotIdSubject,
  ProjectActivity,
  type SpikeChange,
} from "../../../../src/readers/effects/spikes/project-activity.ts";
import type { SpikeRow } from "../../../../src/readers/effects/types.ts";
import { idHashOf } from "../line-kit.ts";

const minuteMs = 60_000;
const dayMinutes = 24 * 60;
const start = Date.UTC(2026, 10, 22) / minuteMs;

/** Feeds a project with minutes of events. Times are minutes since the project's first event. */
class Project {
  readonly reported: [change: SpikeChange, row: SpikeRow][] = [];
  activity = new ProjectActivity("p", (row, change) => this.reported.push([change, row]));
  at = 0;

  minutes(...counts: number[]): this {
    for (const count of counts) this.#minute(Array.from({ length: count }, (_, id) => String(id)));
    return this;
  }

  for(minutes: number, count: number): this {
    return this.minutes(...new Array<number>(minutes).fill(count));
  }

  ofIds(ids: Record<string, number>): this {
    return this.#minute(Object.entries(ids).flatMap(([id, n]) => new Array<string>(n).fill(id)));
  }

  late(minute: number, count: number): this {
    for (let at = 0; at < count; at++) this.activity.count(start + minute, "late", 7);
    return this;
  }

  spikes(): unknown[] {
    this.activity.close(start + this.at);
    return this.reported
      .filter(([change]) => change !== "went on")
      .map(([change, { subject, startedAtMs, endedAtMs, ...row }]) => ({
        change,
        subject,
        from: startedAtMs / minuteMs - start,
        to: endedAtMs === undefined ? undefined : endedAtMs / minuteMs - start,
        events: row.events,
        peak: row.peakPerMinute,
        baseline: row.baseline,
        threshold: row.threshold,
      }));
  }

  #minute(ids: string[]): this {
    this.activity.close(start + this.at);
    for (const id of ids) this.activity.count(start + this.at, id, idHashOf(id).idHashHigh);
    this.at++;
    return this;
  }
}

describe("a project's spike", () => {
  test("begins after two minutes above the threshold and ends after five below", () => {
    const project = new Project().for(60, 10).minutes(600, 900, 400, 300, 0, 400, 0, 0, 0, 0, 0);
    const limits = { subject: "project", from: 60, baseline: 18.03, threshold: 500 };
    // The mean of 60 minutes with 10 events and one minute that is limited to 500 events.
    expect(project.spikes()).toEqual([
      { change: "began", ...limits, to: undefined, peak: 900, events: 1_500 },
      { change: "ended", ...limits, to: 66, peak: 900, events: 1_500 + 400 + 300 + 400 },
    ]);
  });

  test("does not begin after a single minute above the threshold", () => {
    expect(new Project().for(60, 10).minutes(600, 500, 600, 500, 700).for(9, 10).spikes()).toEqual(
      [],
    );
  });

  test("does not begin before there are 60 minutes of data", () => {
    expect(new Project().for(58, 2).minutes(9_000, 9_000).for(9, 10).spikes()).toEqual([]);
    expect(new Project().for(60, 2).minutes(9_000, 9_000).spikes()).toHaveLength(1);
  });

  test("is followed by a pause of ten minutes", () => {
    const project = new Project().for(60, 10).minutes(800, 800).for(5, 0);
    expect(project.spikes()).toHaveLength(2);
    // The first of the two minutes that begin a spike.
    project.for(10, 9_000).minutes(9_000);
    expect(project.spikes()).toHaveLength(2);
    project.minutes(9_000);
    expect(project.spikes()).toHaveLength(3);
    expect(project.spikes()[2]).toMatchObject({ change: "began", from: 77 });
  });

  test("has a threshold of three times the mean if the minutes are steady", () => {
    expect(new Project().for(90, 400).minutes(1_199, 1_199).spikes()).toEqual([]);
    const spikes = new Project().for(90, 400).minutes(1_300, 1_300).spikes();
    // The first minute of the spike is limited to its threshold of 1,200.
    const mean = (90 * 400 + 1_200) / 91;
    expect(spikes).toMatchObject([{ baseline: Math.round(100 * mean) / 100 }]);
  });

  test("has a threshold of up to six times the mean if the minutes vary", () => {
    const unsteady = new Project();
    for (let at = 0; at < 60; at++) unsteady.minutes(at % 4 === 0 ? 800 : 0);
    // The standard deviation is higher than the mean of 200.
    expect(unsteady.minutes(1_190, 1_190).spikes()).toEqual([]);
    expect(unsteady.minutes(3_000, 3_000).spikes()).toHaveLength(1);
  });

  test("is compared with the same hour of earlier days", () => {
    const project = new Project();
    for (let day = 0; day < 3; day++)
      project
        .for(10 * 60, 0)
        .for(60, 300)
        .for(13 * 60, 0);
    project.for(10 * 60, 0).minutes(10_000, 10_000);
    // The hour at ten has 300 events per minute and weight 1. The two adjacent hours have none and
    // weight 1/2. So half of 300 is the baseline.
    expect(project.spikes()).toMatchObject([{ from: 3 * dayMinutes + 600, baseline: 150 }]);
  });

  test("is compared with the same weekday at triple weight", () => {
    const project = new Project();
    for (let day = 0; day < 7; day++) project.for(dayMinutes, day === 0 ? 300 : 0);
    project.for(600, 0).minutes(10_000, 10_000);
    // The adjacent hour before ten of seven days ago is no longer known. So the weights are 4.5 of
    // 16.5.
    expect(project.spikes()).toMatchObject([
      { from: 7 * dayMinutes + 600, baseline: Math.round((100 * 300 * 4.5) / 16.5) / 100 },
    ]);
  });

  test("raises the baseline at most to its threshold", () => {
    const project = new Project().for(60, 10).for(30, 5_000).for(5, 0).spikes();
    expect(project).toMatchObject([{ baseline: expect.closeTo(18, 0) }, { to: 90 }]);
    const later = new Project().for(60, 10).for(30, 5_000).for(30, 0).minutes(20_000, 20_000);
    const { baseline } = later.spikes().at(-1) as { baseline: number };
    expect(baseline).toBeGreaterThan(100);
    expect(baseline).toBeLessThan(1_500);
  });

  test("does not begin because of late events", () => {
    const project = new Project().for(61, 10).late(58, 9_000).late(59, 9_000).for(8, 10);
    expect(project.spikes()).toEqual([]);
    const { baseline } = project.minutes(9_000, 9_000, 0).spikes()[0] as { baseline: number };
    expect(baseline).toBeGreaterThan((60 * 10 + 18_000) / 75);
  });
});

describe("a hot id", () => {
  test("is reported for each minute with over 6,000 of its events", () => {
    const project = new Project().ofIds({ a: 100, hot: 7_000 }).ofIds({ hot: 7_500, b: 20_000 });
    project.ofIds({ hot: 5_000 }).minutes(0);
    expect(project.spikes()).toMatchObject([
      { change: "began", subject: "hot", from: 0, threshold: 6_000 },
      { change: "began", subject: "b", from: 1 },
      { change: "ended", subject: "hot", from: 0, to: 2 },
      { change: "ended", subject: "b", from: 1, to: 2 },
    ]);
    // The first 500 events of a minute are not counted.
    expect(project.spikes()[2]).toMatchObject({ peak: 7_000, events: 6_600 + 7_000 });
  });

  test("is found among many ids", () => {
    const ids: Record<string, number> = {};
    for (let at = 0; at < 300; at++) ids[`cold ${at}`] = 30;
    ids["hot"] = 7_000;
    for (let at = 0; at < 300; at++) ids[`late ${at}`] = 30;
    expect(new Project().ofIds(ids).minutes(0).spikes()).toMatchObject([
      { change: "began", subject: "hot", peak: 7_000 },
      { change: "ended", subject: "hot" },
    ]);
  });

  test("that is called `project` is distinguished from the project", () => {
    expect(["project", "id:project", "id:", "a"].map(hotIdSubject)).toEqual([
      "id:project",
      "id:id:project",
      "id:id:",
      "a",
    ]);
  });
});

test("the stored activity of a different version is rejected", () => {
  expect(() => ProjectActivity.from("p", "[2]", () => undefined)).toThrow("format 2");
});

test("the stored activity of a project with few events is short", () => {
  const project = new Project();
  for (let hour = 0; hour < 200; hour++) project.minutes(1).for(59, 0);
  expect(project.activity.text().length).toBeLessThan(500);
  expect(new Project().minutes(1).activity.text().length).toBeLessThan(80);
});
