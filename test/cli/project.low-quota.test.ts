// A quota is told with what it lets through at once where that is more than the quota itself says.

import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { commandLine } from "../../src/app/command-line.ts";
import { natsServerForFile } from "../../testkit/for-file.ts";

const server = await natsServerForFile();

/** What `penstock project` with these arguments prints. */
async function project(...args: string[]): Promise<string> {
  let said = "";
  const stdout = new Writable({
    write(chunk: Buffer, _, done) {
      said += chunk.toString();
      done();
    },
  });
  const context = {
    env: { PENSTOCK_NATS_URL: server.url },
    host: process,
    mainFile: "",
    channel: { connected: false, on: () => {} },
    stdout,
    stderr: stdout,
    stop: new AbortController().signal,
  };
  await commandLine(context).parseAsync(["project", ...args], { from: "user" });
  return said;
}

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
