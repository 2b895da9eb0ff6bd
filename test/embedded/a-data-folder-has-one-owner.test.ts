// A second gateway on a folder in use says who has it and touches nothing; of many at once, exactly one gets it.

import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { type DataLock, lockDataDir } from "../../src/embedded/data-lock.ts";
import { embeddedOn, ended, penstock, temporaryFolder } from "./embedded-kit.ts";

test("the second is refused with the first one's pid, and the first works on", async () => {
  const dataDir = temporaryFolder();
  const first = await embeddedOn(dataDir);
  const files = readdirSync(path.join(dataDir, "nats"));
  const second = penstock("up", "--data-dir", dataDir, "--port", "0", "--admin-port", "0");
  expect(await ended(second)).toBe(1);
  expect(second.said.err).toContain(`in use by process ${process.pid}`);
  expect(readdirSync(path.join(dataDir, "nats"))).toEqual(files);
  expect(first.restarts).toBe(0);
});

test("of ten that try at once one gets it, and after it the next", async () => {
  const dataDir = temporaryFolder();
  const outcomes = await Promise.allSettled(Array.from({ length: 10 }, () => lockDataDir(dataDir, process)));
  const locks = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  expect(locks).toHaveLength(1);
  (locks[0] as DataLock).release();
  (await lockDataDir(dataDir, process)).release();
});

test("the claim of a dead process whose pid is another's now does not count", async () => {
  const dataDir = temporaryFolder();
  (await lockDataDir(dataDir, process)).release();
  const claim = { pid: process.pid, startedAt: "an-earlier-boot:1", held: true };
  writeFileSync(path.join(dataDir, "nats", "owner-1-stale.json"), JSON.stringify(claim));
  (await lockDataDir(dataDir, process)).release();
  expect(readdirSync(path.join(dataDir, "nats"))).toEqual([]);
});
