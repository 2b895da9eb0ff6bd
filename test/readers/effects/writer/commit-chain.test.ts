import { expect, test } from "vitest";
import { noRows } from "../../../../src/readers/effects/store/rows/flat-commit.ts";
import type { Commit } from "../../../../src/readers/effects/types.ts";
import { CommitChain } from "../../../../src/readers/effects/writer/transaction.ts";

test("each commit names its predecessor", async () => {
  const commits: Commit[] = [];
  let fault: Error | undefined;
  const chain = new CommitChain({
    commit: async (commit) => {
      commits.push(commit);
      if (fault !== undefined) throw fault;
    },
  });
  chain.begin(7);
  await chain.write(noRows, true);
  fault = new Error("the database is away");
  await expect(chain.write(noRows, false)).rejects.toBe(fault);
  fault = undefined;
  await chain.write(noRows, false);
  await chain.write(noRows, false);
  const [part, failed, first, second] = commits;
  expect([part, failed, first].map((one) => [one?.after, one?.isPart])).toEqual([
    [7, true],
    [7, false],
    [7, false],
  ]);
  expect(new Set([part?.number, failed?.number, first?.number]).size).toBe(1);
  expect(second?.after).toBe(first?.number);
  expect(second?.number).not.toBe(first?.number);
});
