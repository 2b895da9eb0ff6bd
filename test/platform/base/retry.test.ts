import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  pauseUntilAborted,
  restartLoop,
  retryWithWarning,
  SparseWarning,
} from "../../../src/platform/base/retry.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const said: string[] = [];
const log = { warn: (_fields: object, message: string) => void said.push(message) };
beforeEach(() => void said.splice(0));

function explain(error: unknown) {
  if (error instanceof TypeError) throw error;
  return { fields: {}, message: (error as Error).message };
}

test("work is retried until it succeeds", async () => {
  let tries = 0;
  const work = () => (++tries < 4 ? Promise.reject(new Error(`try ${tries}`)) : Promise.resolve(7));
  const warning = new SparseWarning(log, 5_000);
  await expect(retryWithWarning(work, { pauseMs: 1, warning, explain })).resolves.toBe(7);
  expect([tries, said]).toEqual([4, ["try 1"]]);
});

test("a repeated warning is logged again only after its interval", () => {
  const warning = new SparseWarning(log, 5_000);
  warning.warn({}, "first");
  vi.advanceTimersByTime(4_999);
  warning.warn({}, "too soon");
  vi.advanceTimersByTime(1);
  warning.warn({}, "second");
  expect(said).toEqual(["first", "second"]);
});

test("retries end at an error that no retry can fix", async () => {
  let tries = 0;
  const work = () => Promise.reject(++tries === 1 ? new Error("passes") : new TypeError("stays"));
  const warning = new SparseWarning(log, 0);
  await expect(retryWithWarning(work, { pauseMs: 1, warning, explain })).rejects.toThrow("stays");
  expect([tries, said]).toEqual([2, ["passes"]]);
});

test("an abort ends the retries with the reason of its signal", async () => {
  const options = { pauseMs: 3_600_000, warning: new SparseWarning(log, 0), explain };
  const stopping = new AbortController();
  const work = () => {
    setImmediate(() => stopping.abort(new Error("stopped")));
    return Promise.reject(new Error("failed"));
  };
  const retried = retryWithWarning(work, { ...options, signal: stopping.signal });
  await expect(retried).rejects.toMatchObject({ name: "AbortError" });
  const never = vi.fn(() => Promise.resolve());
  await expect(retryWithWarning(never, { ...options, signal: stopping.signal })).rejects.toThrow(
    "stopped",
  );
  expect(never).not.toHaveBeenCalled();
});

test("an aborted pause ends without an error", async () => {
  const stopping = new AbortController();
  setImmediate(() => stopping.abort());
  await pauseUntilAborted(3_600_000, stopping.signal);
  await pauseUntilAborted(3_600_000, stopping.signal);
});

test("pauses between restarts double up to a maximum", async () => {
  const stopping = new AbortController();
  const pauses: [number, string | undefined][] = [];
  const runs = ["short", "short", "short", "long", "long failed", "short"];
  await restartLoop(
    async () => {
      const kind = runs.shift()!;
      if (kind.startsWith("long")) vi.advanceTimersByTime(101);
      if (kind.endsWith("failed")) throw new Error(kind);
    },
    {
      signal: stopping.signal,
      pauseMsMin: 1,
      pauseMsMax: 4,
      steadyMs: 100,
      ended(pauseMs, error) {
        pauses.push([pauseMs, (error as Error | undefined)?.message]);
        if (runs.length === 0) stopping.abort();
      },
    },
  );
  expect(pauses).toEqual([
    [1, undefined],
    [2, undefined],
    [4, undefined],
    [1, undefined],
    [2, "long failed"],
    [4, undefined],
  ]);
});

test("a run that ends after the abort is not restarted", async () => {
  const stopping = new AbortController();
  const ended = vi.fn();
  const run = vi.fn(async () => stopping.abort());
  const pauses = { pauseMsMin: 1, pauseMsMax: 1, steadyMs: 1 };
  await restartLoop(run, { signal: stopping.signal, ...pauses, ended });
  expect([run.mock.calls.length, ended.mock.calls.length]).toEqual([1, 0]);
});
