import { expect, test } from "vitest";
import type { Run } from "../../../src/effects/types.ts";
import { RunLog } from "../../../src/effects/writer/run-log.ts";
import { storedFrame } from "../line-kit.ts";

const live = { stream: "PENSTOCK_LIVE_0", lane: "live", partition: 0, epoch: 1 } as const;
const historical = { ...live, stream: "PENSTOCK_HISTORICAL_0", lane: "historical" } as const;
const other = { ...live, stream: "PENSTOCK_LIVE_1", partition: 1 } as const;

test("frames one behind the other are one run, until the other stream of the partition comes", () => {
  const log = new RunLog();
  for (const frame of [
    { ...live, sequence: 3 },
    { ...live, sequence: 4 },
    { ...historical, sequence: 1 },
    { ...live, sequence: 5 },
  ])
    log.add(storedFrame(frame));
  expect(log.take().map(({ stream, from, to }) => [stream, from, to])).toEqual([
    [live.stream, 3, 4],
    [historical.stream, 1, 1],
    [live.stream, 5, 5],
  ]);
});

test("a gap and a new epoch begin a run; a frame of another partition does not", () => {
  const log = new RunLog();
  for (const frame of [
    { ...live, sequence: 1 },
    { ...other, sequence: 7 },
    { ...live, sequence: 2 },
    { ...live, sequence: 4 },
    { ...live, sequence: 5, epoch: 2 },
  ])
    log.add(storedFrame(frame));
  expect(log.take()).toEqual([
    { stream: live.stream, partition: 0, epoch: 1, from: 1, to: 2 },
    { stream: other.stream, partition: 1, epoch: 1, from: 7, to: 7 },
    { stream: live.stream, partition: 0, epoch: 1, from: 4, to: 4 },
    { stream: live.stream, partition: 0, epoch: 2, from: 5, to: 5 },
  ]);
});

test("a run that was taken is given again where it became longer, as a whole", () => {
  const log = new RunLog();
  log.add(storedFrame({ ...live, sequence: 1 }));
  const taken = log.take();
  log.add(storedFrame({ ...live, sequence: 2 }));
  expect(taken).toMatchObject([{ from: 1, to: 1 }]);
  expect(log.take()).toMatchObject([{ from: 1, to: 2 }]);
  expect(log.take()).toEqual([]);
});

/** A frame with lines of these projects. */
function add(log: RunLog, partition: number, sequence: number, ...projects: string[]): void {
  for (const project of projects) log.see(project, partition);
  log.add(storedFrame({ ...live, stream: `LIVE_${partition}`, partition, sequence }));
}

const short = (runs: readonly Run[]): string[] =>
  runs.map(({ stream, from, to }) => `${stream} ${from}-${to}`);

test("partitions that share no project have one run each, however they take turns", () => {
  const log = new RunLog();
  for (let n = 1; n <= 50; n++) for (const one of [0, 1, 2]) add(log, one, n, `p${one}`, `q${one}`);
  expect(short(log.take())).toEqual(["LIVE_0 1-50", "LIVE_1 1-50", "LIVE_2 1-50"]);
});

test("no run goes on over a project that went to another partition", () => {
  const log = new RunLog();
  add(log, 0, 1, "p", "q");
  add(log, 2, 1, "r");
  log.take();
  add(log, 1, 1, "p");
  add(log, 0, 2, "q");
  add(log, 2, 2, "r");
  add(log, 0, 3, "p", "q");
  add(log, 1, 2, "s");
  add(log, 0, 4, "p");
  const runs = ["LIVE_1 1-1", "LIVE_0 2-2", "LIVE_2 2-2", "LIVE_0 3-4", "LIVE_1 2-2"];
  expect(short(log.take())).toEqual(runs);
});

test("no run goes on where it is not known any more in which partition a project was", () => {
  const log = new RunLog(2);
  add(log, 0, 1, "p");
  add(log, 1, 1, "q");
  add(log, 1, 2, "r");
  add(log, 1, 3, "p");
  expect(short(log.take())).toEqual(["LIVE_0 1-1", "LIVE_1 1-1", "LIVE_1 2-3"]);
  log.begin();
  add(log, 1, 4, "p");
  expect(short(log.take())).toEqual(["LIVE_1 4-4"]);
});
