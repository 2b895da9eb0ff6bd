import { describe, expect, test } from "vitest";
import {
  type PendingReports,
  PendingRequest,
} from "../../../src/gateway/intake/pending-request.ts";
import { Tally } from "../../../src/gateway/intake/tally.ts";
import { Meter } from "../../../src/gateway/projects/quota/meter.ts";
import type { FrameOutcome } from "../../../src/gateway/publish/port.ts";
import type { ErrorCode, Problem } from "../../../src/platform/base/errors.ts";
import { costOf, takenOf } from "../../kit/cost-of.ts";

const unfit: Problem = {
  code: "unavailable",
  detail: "Stream LIVE_0 cannot guarantee that acknowledged events stay stored: it was edited",
};

function answerTo(
  settled: [FrameOutcome, ErrorCode | undefined][],
  refusal: Problem | undefined,
): Problem | undefined {
  let answer: Problem | undefined;
  const exchange = {
    answerProblem(problem: Problem) {
      answer = problem;
    },
    answerStored() {},
  };
  const project = { id: "a", name: "a", keys: [], enabled: true, meter: new Meter(() => 0) };
  const taken = takenOf(project.meter, costOf(settled.length, 1));
  const tally = new Tally();
  const pending = new PendingRequest({ exchange, project, lane: "live", taken, tally } as never, {
    metrics: { events() {} } as unknown as PendingReports["metrics"],
    publisher: { refusalOf: () => refusal },
  });
  for (const _frame of settled) pending.expectFrame();
  pending.placed();
  for (const [outcome, code] of settled) pending.frameSettled(outcome, code, 1, 1, 1);
  return answer;
}

describe("the answer to a request whose stream becomes unusable", () => {
  test("names the stream and the unknown outcome if events were sent", () => {
    const detail = expect.stringMatching(
      /^Stream LIVE_0 .*: it was edited; events in flight may be stored or not/,
    );
    expect(answerTo([["unknown", "unavailable"]], unfit)).toEqual({ code: "timeout", detail });
    expect(
      answerTo(
        [
          ["stored", undefined],
          ["refused", "store_full"],
          ["unknown", "unavailable"],
        ],
        unfit,
      ),
    ).toEqual({
      code: "timeout",
      detail,
    });
  });

  test("is `timeout` with an unknown outcome if the stream is usable again", () => {
    expect(answerTo([["unknown", "unavailable"]], undefined)).toEqual({
      code: "timeout",
      detail: expect.stringContaining("may be stored or not"),
    });
  });

  test("names the stream and the error if the stream refused the events", () => {
    expect(answerTo([["refused", "unavailable"]], unfit)).toEqual(unfit);
  });

  test("is `timeout` if the store responded too late", () => {
    expect(answerTo([["unknown", "timeout"]], unfit)?.code).toBe("timeout");
  });
});
