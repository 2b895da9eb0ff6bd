import { describe, expect, test } from "vitest";
import { ReplyWriter } from "../../../src/gateway/http/reply.ts";
import type { HttpResponse } from "../../../src/gateway/http/uws.ts";
import type { ErrorCode, Problem } from "../../../src/platform/base/errors.ts";

function retryAfter(problem: Problem, outageMs: number): [number, number] {
  const seconds = [0, 0.999_999].map((random) => {
    const headers = new Map<string, string>();
    const response = {
      cork: (write: () => void) => write(),
      writeStatus: () => response,
      writeHeader: (name: string, value: string) => {
        headers.set(name, value);
        return response;
      },
      end: () => response,
    };
    new ReplyWriter({ random: () => random, outageMs: () => outageMs }).problem(
      response as unknown as HttpResponse,
      problem,
      { origin: "", close: false, headOnly: false, isV1: false, lane: "live", projectId: "p" },
    );
    return Number(headers.get("Retry-After"));
  });
  return [seconds[0]!, seconds[1]!];
}

const problemOf = (code: ErrorCode, retryAfterMs?: number): Problem => ({
  code,
  detail: "",
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});

describe("Retry-After", () => {
  test.each([
    [0, 1, 2],
    [900, 1, 2],
    [2_000, 2, 3],
    [8_000, 8, 12],
    [25_000, 25, 37],
    [60_000, 40, 60],
    [86_400_000, 40, 60],
  ])("after %i ms without the store is %i to %i s", (outageMs, least, most) => {
    for (const code of ["unavailable", "timeout", "store_full"] as const)
      expect(retryAfter(problemOf(code), outageMs)).toEqual([least, most]);
  });

  test("is 1 to 5 s for `overloaded` while the store is available", () => {
    expect(retryAfter(problemOf("overloaded"), 8_000)).toEqual([8, 12]);
    expect(retryAfter(problemOf("overloaded"), 0)).toEqual([1, 5]);
  });

  test("does not depend on the store for a quota, share or drain", () => {
    for (const outageMs of [0, 40_000]) {
      expect(retryAfter(problemOf("rate_limited", 3_000), outageMs)).toEqual([3, 7]);
      expect(retryAfter(problemOf("project_full", 30_000), outageMs)).toEqual([30, 34]);
      expect(retryAfter(problemOf("draining"), outageMs)).toEqual([1, 5]);
      expect(retryAfter(problemOf("rate_limited", 600_000), outageMs)).toEqual([56, 60]);
    }
  });
});
