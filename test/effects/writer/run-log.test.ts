import { expect, test } from "vitest";
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

test("runs that were taken are not given again, and not made longer", () => {
  const log = new RunLog();
  log.add(storedFrame({ ...live, sequence: 1 }));
  const taken = log.take();
  log.add(storedFrame({ ...live, sequence: 2 }));
  expect(taken).toMatchObject([{ from: 1, to: 1 }]);
  expect(log.take()).toMatchObject([{ from: 2, to: 2 }]);
  expect(log.take()).toEqual([]);
});
