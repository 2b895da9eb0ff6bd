import { expect, test } from "vitest";
import { isHere } from "../../../../src/readers/sinks/posthog/upstream.ts";

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
