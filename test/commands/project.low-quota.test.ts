import { expect, test } from "vitest";
import { natsServerForFile } from "../kit/for-file.ts";
import { projectCommand } from "../kit/project-command.ts";

const server = await natsServerForFile();

const project = (...args: string[]) => projectCommand(server.url, args);

test("project limit prints the minimum burst if the quota has a smaller one", async () => {
  await project("add", "q1");
  const low = await project("limit", "q1", "--events-per-second", "1");
  expect(low).toContain("1 events/s, burst 10 s; a burst is at least 100 events");
  const lowBytes = ["--bytes-per-second", "1000", "--events-per-second", "1"];
  expect(await project("limit", "q1", ...lowBytes)).toContain(
    "; a burst is at least 100 events and 65536 bytes",
  );
  const enough = await project("limit", "q1", "--events-per-second", "10");
  expect(enough).toContain(
    "10 events/s, 1000 bytes/s, burst 10 s; a burst is at least 65536 bytes\n",
  );
  expect(await project("limit", "q1", "--none")).toBe("project q1 has no quota\n");
});

test("project limit sets a stream share from 1 to 100", async () => {
  await project("add", "q2");
  const share = await project("limit", "q2", "--stream-share", "40");
  expect(share).toBe("project q2 has a quota, with rates per gateway process: 40 % of a stream\n");
  const both = await project("limit", "q2", "--stream-share", "5", "--events-per-second", "50");
  expect(both).toContain("50 events/s, burst 10 s, 5 % of a stream\n");
  for (const wrong of ["0", "0.9", "100.1", "-1", "many", ""])
    await expect(project("limit", "q2", "--stream-share", wrong)).rejects.toThrow(
      "must be a number from 1 to 100",
    );
  for (const wrong of [["--none", "--stream-share", "5"], ["--none", "--burst", "5"], []])
    await expect(project("limit", "q2", ...wrong)).rejects.toThrow("project limit: give");
});

test("project limit keeps limits that are not given", async () => {
  await project("add", "q3");
  await project("limit", "q3", "--events-per-second", "50", "--bytes-per-second", "1e6");
  expect(await project("limit", "q3", "--stream-share", "90")).toContain(
    ": 50 events/s, 1000000 bytes/s, burst 10 s, 90 % of a stream\n",
  );
  expect(await project("limit", "q3", "--burst", "60")).toContain(
    ": 50 events/s, 1000000 bytes/s, burst 60 s, 90 % of a stream\n",
  );
  expect(await project("limit", "q3", "--events-per-second", "20")).toContain(
    ": 20 events/s, 1000000 bytes/s, burst 60 s, 90 % of a stream\n",
  );
  expect(await project("limit", "q3", "--none")).toBe("project q3 has no quota\n");
  const share = await project("limit", "q3", "--stream-share", "5");
  expect(share).toBe("project q3 has a quota, with rates per gateway process: 5 % of a stream\n");
  await expect(project("limit", "q3", "--burst", "5")).rejects.toThrow(
    "cannot limit project q3: --burst needs a rate, and the project has none",
  );
});
