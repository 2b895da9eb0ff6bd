// Wrong settings and wrong usage end with 2 and name everything that is wrong; what fails at run
// time ends with 1.

import { describe, expect, test } from "vitest";
import { ended, penstock, temporaryFolder } from "../../kit/processes.ts";

describe("faults are listed together", () => {
  test("every fault of the settings is in one message", async () => {
    const child = penstock("serve", "--port", "x", "--partitions", "0", "--live-age-max", "soon");
    expect(await ended(child)).toBe(2);
    for (const flag of ["--port", "--partitions", "--live-age-max"])
      expect(child.said.err).toContain(`${flag}: must be`);
  });

  test.each([
    [["serve", "--bogus"]],
    [["tail", "--lane", "sideways"]],
    [["project", "add"]],
    [["fly"]],
  ])("wrong usage: %j", async (args) => {
    const child = penstock(...args);
    expect(await ended(child)).toBe(2);
    expect(child.said.err).toContain("error:");
  });

  test("a wrong argument is wrong usage also where no NATS is to be found", async () => {
    const child = penstock("project", "add", "a b", "--data-dir", temporaryFolder());
    expect(await ended(child)).toBe(2);
    expect(child.said.err).toContain("the project's id must match");
  });

  test("no NATS to be found", async () => {
    const child = penstock("project", "list", "--data-dir", temporaryFolder());
    expect(await ended(child)).toBe(1);
    expect(child.said.err).toContain("find NATS");
  });

  test("help says every setting and ends well", async () => {
    const child = penstock("serve", "--help");
    expect(await ended(child)).toBe(0);
    expect(child.said.out).toContain("PENSTOCK_STREAM_BYTES_MAX");
  });
});
