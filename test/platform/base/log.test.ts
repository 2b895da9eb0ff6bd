import { expect, test } from "vitest";
import { createLog } from "../../../src/platform/base/log.ts";

test("the log writes JSON lines with level, time and message", () => {
  const lines: string[] = [];
  const log = createLog("warn", { write: (line) => void lines.push(line) });
  log.info({}, "not shown");
  log.warn({ frames: 3 }, "Send a frame: no answer");
  expect(lines).toHaveLength(1);
  const { level, time, ...rest } = JSON.parse(lines[0]!);
  expect(rest).toEqual({ name: "penstock", frames: 3, msg: "Send a frame: no answer" });
  expect(level).toBe(40);
  expect(new Date(time).toISOString()).toBe(time);
  expect(lines[0]).toMatch(/\n$/);
});
