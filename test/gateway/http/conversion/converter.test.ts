import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import type { RequestBody } from "../../../../src/gateway/body/request-body.ts";
import type { Conversion } from "../../../../src/gateway/http/conversion/conversion.ts";
import { ConversionThread, Converter } from "../../../../src/gateway/http/conversion/converter.ts";

const threads: ConversionThread[] = [];
afterEach(() => {
  for (const thread of threads.splice(0)) thread.close();
});

function threadOf(cpuMsMax = 600_000, idleMs = 60_000): ConversionThread {
  const file = new URL("./odd-thread.ts", import.meta.url);
  const thread = new ConversionThread({ cpuMsMax, idleMs, file });
  threads.push(thread);
  return thread;
}

function converterOf(thread: ConversionThread) {
  const outcomes: string[] = [];
  let nowMs = 0;
  const converter = new Converter({
    intake: (_request, whole) => {
      outcomes.push(whole.bytes.toString());
      return undefined;
    },
    monotonicMs: () => nowMs,
    thread,
  });

  function take(text: string, { apiKey = "phc_known", bytes = 20_000, deadlineMs = 100 } = {}) {
    const request = {
      isOver: false,
      deadlineMs,
      answerProblem: ({ code }: { readonly code: string }) => outcomes.push(`${text} ${code}`),
    };
    const body = {
      request,
      hint: undefined as object | undefined,
      get showsProject() {
        return this.hint !== undefined && apiKey !== "phc_nobody";
      },
      peek() {
        this.hint = {};
      },
      tryHold: () => true,
      stopGrowing: () => {},
    };
    const conversion: Conversion = {
      head: { kind: "otlp", apiKey, contentType: "" },
      takesEmpty: false,
      bytesMax: 30_000,
      notes: undefined,
      convert: () => Buffer.from("rejected unread"),
      answer: () => expect.unreachable(),
    };
    const whole = { memory: "owned", bytes: Buffer.from(text.padEnd(bytes)) } as const;
    return { request, done: converter.take(body as unknown as RequestBody, whole, conversion) };
  }

  return {
    converter,
    outcomes,
    take,
    advanceTo: (ms: number) => {
      nowMs = ms;
    },
  };
}

test.each([
  [10, "phc_known", "text"],
  [10, "phc_nobody", '{"api_key":"phc_nobody","batch":[]}'],
  [10, "", "text missing_api_key"],
  [20_000, "phc_known", "text"],
  [20_000, "phc_nobody", '{"api_key":"phc_nobody","batch":[]}'],
  [20_000, "", "text missing_api_key"],
  [30_001, "phc_known", "rejected unread"],
])(
  "conversion of a body of %i bytes with the key %j results in: %s",
  async (bytes, apiKey, outcome) => {
    const { outcomes, take } = converterOf(threadOf());
    await take("text", { bytes, apiKey }).done;
    expect(outcomes).toEqual([outcome]);
  },
);

test("conversion alternates between projects", async () => {
  const { outcomes, take } = converterOf(threadOf());
  const many = Array.from({ length: 100 }, (_, at) => take(`a${at}`, { apiKey: "phc_a" }));
  const other = take("b", { apiKey: "phc_b" });
  await Promise.all([...many, other].map(({ done }) => done));
  expect(outcomes).toHaveLength(101);
  expect(outcomes.indexOf("b")).toBeLessThanOrEqual(2);
});

test("a body is not converted if its deadline passes while it waits", async () => {
  const { outcomes, take, advanceTo } = converterOf(threadOf());
  const running = take("first", { apiKey: "phc_a", deadlineMs: 1_000 });
  const late = take("late", { deadlineMs: 100 });
  advanceTo(100);
  await Promise.all([running.done, late.done]);
  expect(outcomes.toSorted()).toEqual(["first", "late overloaded"]);
});

test("a request ends without conversion if its client disconnects", async () => {
  const { outcomes, take } = converterOf(threadOf());
  const requests = ["first", "left"].map((text) => take(text));
  requests[1]!.request.isOver = true;
  await Promise.all(requests.map(({ done }) => done));
  expect(outcomes).toEqual(["first", "left overloaded"]);
});

describe("the conversion thread", () => {
  test.each([
    ["hangs", "hangs"],
    ["exceeds its memory", "fills"],
  ])("loses only its current body if the conversion %s", async (_what, text) => {
    const thread = threadOf(text === "hangs" ? 1_000 : 600_000);
    const { outcomes, take } = converterOf(thread);
    const bodies = [take(text), take("next")];
    await Promise.all(bodies.map(({ done }) => done));
    expect(outcomes).toEqual([`${text} invalid_payload`, "next"]);
  });

  test.each(["throws", "exits"])(
    "is replaced for the next body if the conversion %s",
    async (text) => {
      const { outcomes, take } = converterOf(threadOf());
      const [failed, next] = [take(text), take("next")];
      await expect(failed.done).rejects.toThrow("its thread has ended");
      await next.done;
      expect(outcomes).toEqual(["next"]);
    },
  );
});

test("the conversion thread starts with the first body and ends when idle", async () => {
  const thread = threadOf(60_000, 50);
  const { outcomes, take } = converterOf(thread);
  expect(thread.isRunning).toBe(false);
  for (const text of ["one", "two"]) {
    const { done } = take(text);
    await delay(0);
    expect(thread.isRunning).toBe(true);
    await done;
    await expect.poll(() => thread.isRunning).toBe(false);
  }
  expect(outcomes).toEqual(["one", "two"]);
});

test("the conversion thread ends with the gateway", async () => {
  const { converter, outcomes, take } = converterOf(threadOf());
  const bodies = ["hangs", "waits"].map((text) => take(text));
  await delay(0);
  converter.close();
  await Promise.all(bodies.map(({ done }) => done));
  expect(outcomes).toEqual(["hangs draining", "waits draining"]);
});
