// Wrong settings and wrong usage end with 2 and report every error; failures at run time end with
// 1.

import { describe, expect, test } from "vitest";
import { ended, penstock, temporaryFolder } from "../../kit/processes.ts";

describe("errors are listed together", () => {
  test("reports every error of the settings in one message", async () => {
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

  test("reports a wrong argument as wrong usage even without NATS", async () => {
    const child = penstock("project", "add", "a b", "--data-dir", temporaryFolder());
    expect(await ended(child)).toBe(2);
    expect(child.said.err).toContain("the project's id must match");
  });

  test("reports a missing NATS", async () => {
    const child = penstock("project", "list", "--data-dir", temporaryFolder());
    expect(await ended(child)).toBe(1);
    expect(child.said.err).toContain("find NATS");
  });

  test("lists every setting in the help and ends successfully", async () => {
    const child = penstock("serve", "--help");
    expect(await ended(child)).toBe(0);
    expect(child.said.out).toContain("PENSTOCK_STREAM_BYTES_MAX");
  });
});
