import { describe, expect, test } from "vitest";
import {
  partitionOf,
  streamName,
  streamSubject,
  subjectOf,
} from "../../../src/platform/nats/names.ts";

describe("the partition of a project", () => {
  test("is FNV-1a (32 bits) of the project's id, modulo the number of partitions", () => {
    // The vectors of the algorithm's authors.
    expect(partitionOf("", 2 ** 32)).toBe(0x811c9dc5);
    expect(partitionOf("a", 2 ** 32)).toBe(0xe40c292c);
    expect(partitionOf("foobar", 2 ** 32)).toBe(0xbf9cf968);
  });

  test("is the same in every release", () => {
    const ids = ["demo", "alpha", "project-42", "A_b-C", "x".repeat(64)];
    expect(ids.map((id) => partitionOf(id, 1))).toEqual([0, 0, 0, 0, 0]);
    expect(ids.map((id) => partitionOf(id, 16))).toEqual([6, 11, 15, 5, 5]);
  });

  test("is distributed evenly for many projects", () => {
    const counts = new Array<number>(8).fill(0);
    for (let number = 0; number < 8_000; number++) counts[partitionOf(`project-${number}`, 8)]!++;
    for (const count of counts) expect(count).toBeGreaterThan(700);
  });

  test("is in the names of streams and subjects after the lane", () => {
    expect(streamName("penstock", "live", 0)).toBe("PENSTOCK_LIVE_0");
    expect(streamName("my_events", "historical", 11)).toBe("MY_EVENTS_HISTORICAL_11");
    expect(streamSubject("penstock", "historical", 3)).toBe("penstock.historical.3.*");
    expect(subjectOf("penstock", "live", { partition: 3, projectId: "demo" })).toBe(
      "penstock.live.3.demo",
    );
  });
});
