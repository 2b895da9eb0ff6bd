import { describe, expect, test } from "vitest";
import { ended, penstock, temporaryFolder } from "../../kit/processes.ts";

describe("a wrong setting or argument", () => {
  test("is reported with all others in one message, with exit code 2", async () => {
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
  ])("is an error with exit code 2: %j", async (args) => {
    const child = penstock(...args);
    expect(await ended(child)).toBe(2);
    expect(child.said.err).toContain("error:");
  });

  test("is reported as such even without NATS", async () => {
    const child = penstock("project", "add", "a b", "--data-dir", temporaryFolder());
    expect(await ended(child)).toBe(2);
    expect(child.said.err).toContain("the project's id must match");
  });

  test("has the exit code 2; a missing NATS has 1", async () => {
    const child = penstock("project", "list", "--data-dir", temporaryFolder());
    expect(await ended(child)).toBe(1);
    expect(child.said.err).toContain("cannot find NATS");
  });

  test("is not an error with --help, which lists the settings", async () => {
    const child = penstock("serve", "--help");
    expect(await ended(child)).toBe(0);
    expect(child.said.out).toContain("PENSTOCK_STREAM_BYTES_MAX");
  });
});
