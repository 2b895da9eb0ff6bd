// A quota is told with what it lets through at once where that is more than the quota itself says.

import { expect, test } from "vitest";
import { natsServerForFile } from "../../testkit/for-file.ts";
import { projectCommand } from "../../testkit/project-command.ts";

const server = await natsServerForFile();

const project = (...args: string[]) => projectCommand(server.url, args);

test("a quota below the least burst says how much may come at once, another does not", async () => {
  await project("add", "q1");
  const low = await project("limit", "q1", "--events-per-second", "1");
  expect(low).toContain("1 events/s, burst 10 s; a burst is 100 events at least");
  const lowBytes = ["--bytes-per-second", "1000", "--events-per-second", "1"];
  expect(await project("limit", "q1", ...lowBytes)).toContain(
    "; a burst is 100 events and 65536 bytes at least",
  );
  const enough = await project("limit", "q1", "--events-per-second", "10");
  expect(enough).toContain("10 events/s, burst 10 s\n");
  expect(await project("limit", "q1", "--none")).toBe("project q1 has no quota\n");
});
