import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { LoopShare } from "../../../../src/gateway/intake/loop-share.ts";
import { plainProtocol } from "../../../../src/gateway/intake/plain-protocol.ts";
import { readUuidsInTurns, UuidList } from "../../../../src/gateway/intake/v1/uuids.ts";
import { Work } from "../../../../src/gateway/intake/work.ts";
import type { ProjectShares } from "../../../../src/gateway/streams/project-shares.ts";
import { createNativeScanner } from "../../../../src/records/native.ts";
import { bareExchange } from "../bare-exchange.ts";
import { event, intakeOnFrames } from "../frames-kit.ts";

const tooLate = { code: "timeout", detail: "" } as const;

function scanned(events: number): Work {
  const batch = Array.from({ length: events }, () => ({ uuid: randomUUID() }));
  const exchange = { ...bareExchange, deadlineMs: 0, answerStored() {}, answerProblem() {} };
  const scanner = createNativeScanner();
  const work = new Work(exchange, plainProtocol, {
    bytes: Buffer.from(JSON.stringify({ batch })),
    scanner,
  });
  scanner.scan(work.body);
  return work;
}

const share = () =>
  new LoopShare({ nextTurn: () => setImmediate(), monotonicMs: () => performance.now() });

test("reading the uuids of a batch is limited per slice", async () => {
  let slices = 0;
  const uuids = await readUuidsInTurns(scanned(40_000), share(), () => void slices++);
  if (!(uuids instanceof UuidList)) return expect.unreachable("refused");
  expect(uuids.length).toBe(40_000);
  // A slice ends with the row that reaches its limit, so it may read a few slots more.
  expect(slices).toBeGreaterThanOrEqual(uuids.probes / (512 + 20));
  expect(slices).toBeGreaterThan(40_000 / 512);
});

test("reading the uuids of a batch ends when the deadline passes", async () => {
  let slices = 0;
  const refusal = () => (++slices === 3 ? tooLate : undefined);
  expect(await readUuidsInTurns(scanned(40_000), share(), refusal)).toBe(tooLate);
  expect(slices).toBe(3);
});

test("a request past its deadline is answered `timeout`", async () => {
  let monotonicMs = 0;
  const shares: ProjectShares = {
    addUnderWay() {},
    stored() {},
    refusalOf: () => {
      monotonicMs = 30_000;
      return undefined;
    },
  };
  const { frames, send } = intakeOnFrames({ shares, monotonicMs: () => monotonicMs });
  const batch = Array.from({ length: 10_000 }, () => event());
  const { problem } = await send([...batch, { ...event(), uuid: undefined }]).answer;
  expect(problem?.code).toBe("timeout");
  expect(frames).toEqual([]);
});
