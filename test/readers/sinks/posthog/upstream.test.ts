import { expect, test } from "vitest";
import {
  isHere,
  readUpstreamAnswer,
  retryAfterMsMax,
} from "../../../../src/readers/sinks/posthog/upstream.ts";

test.each([
  ["http://127.0.0.1:8000", true],
  ["http://0.0.0.0:8000", true],
  ["http://127.0.0.1:8001", false],
  ["http://127.0.0.1", false],
  ["https://192.0.2.1:8000", false],
  ["http://unknown.invalid:8000", false],
])("%s is the local gateway on port 8000: %s", async (upstream, expected) => {
  expect(await isHere(upstream, 8_000)).toBe(expected);
});

function read(status: number, said: unknown, retryAfter?: string) {
  const text = typeof said === "string" ? said : JSON.stringify(said);
  return readUpstreamAnswer({ status, retryAfter, text }, 3);
}

const note = (index: number, code: string) => ({ index, code, detail: "of it" });

test.each([
  ["of PostHog", { status: "Ok" }],
  ["of PostHog, older", { status: 1 }],
  ["in small letters", { status: "ok" }],
  ["of a limit that is not of events", { status: "Ok", quota_limited: ["recordings"] }],
  ["of a Penstock gateway", { status: "Ok", accepted: 3, dropped: 0 }],
  ["with warnings on stored events", { status: "Ok", warnings: [note(1, "missing_set")] }],
])("the PostHog sink treats a 200 as acceptance of all events: %s", (_, said) => {
  expect(read(200, said)).toEqual({ kind: "taken", refused: [] });
});

test("the PostHog sink rejects only events that a Penstock gateway dropped", () => {
  const said = {
    status: "Ok",
    accepted: 1,
    dropped: 2,
    errors: [note(2, "event_too_large")],
    warnings: [note(0, "no_event"), note(1, "x")],
  };
  expect(read(200, said)).toEqual({
    kind: "taken",
    refused: [
      { index: 0, why: "no_event: of it" },
      { index: 2, why: "event_too_large: of it" },
    ],
  });
  expect(read(200, { ...said, dropped: 3 }).kind).toBe("halve");
});

test.each([
  [200, "", "retry"],
  [200, "[]", "retry"],
  [200, "null", "retry"],
  [200, { status: 0 }, "retry"],
  [202, "", "retry"],
  [200, { status: "Ok", quota_limited: ["recordings", "events"] }, "stop"],
  [301, "", "stop"],
  [400, "bad", "halve"],
  [401, "", "stop"],
  [402, "", "stop"],
  [403, "", "stop"],
  [404, "", "stop"],
  [405, "", "stop"],
  [408, "", "retry"],
  [413, "", "halve"],
  [422, "", "halve"],
  [425, "", "retry"],
  [429, "", "retry"],
  [500, "", "retry"],
  [503, "", "retry"],
  [599, "", "retry"],
] as const)("the PostHog sink handles the answer %d with %j: %s", (status, said, kind) => {
  expect(read(status, said).kind).toBe(kind);
});

test("the upstream's Retry-After is read in seconds or as a date", () => {
  const wait = (header: string) => {
    const answer = read(503, "", header);
    return answer.kind === "retry" ? answer.afterMs : undefined;
  };
  expect(wait("7")).toBe(7_000);
  expect(wait("86400")).toBe(retryAfterMsMax);
  expect(wait("soon")).toBeUndefined();
  expect(wait(new Date(Date.now() - 5_000).toUTCString())).toBe(0);
  expect(wait(new Date(Date.now() + 3_600_000).toUTCString())).toBe(retryAfterMsMax);
  const near = wait(new Date(Date.now() + 60_000).toUTCString());
  expect(near).toBeGreaterThan(30_000);
  expect(near).toBeLessThanOrEqual(60_000);
});

test("the error for an upstream's answer contains one short line", () => {
  const why = (said: unknown) => {
    const answer = read(503, said);
    return answer.kind === "retry" ? answer.why : "";
  };
  expect(why({ detail: "the store is full", code: "x" })).toBe("503: the store is full");
  expect(why(`a\n\n ${"b".repeat(1_000)}`)).toMatch(/^503: a b{298}$/);
});
