import { describe, expect, test } from "vitest";
import { ended, penstock, temporaryFolder } from "../../kit/processes.ts";

describe("the exit code of penstock", () => {
  test("is 2 for wrong settings, which are all reported", async () => {
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
  ])("is 2 for the arguments %j", async (args) => {
    const child = penstock(...args);
    expect(await ended(child)).toBe(2);
    expect(child.said.err).toContain("error:");
  });

  test("is 2 for a wrong argument even if NATS is missing", async () => {
    const child = penstock("project", "add", "a b", "--data-dir", temporaryFolder());
    expect(await ended(child)).toBe(2);
    expect(child.said.err).toContain("the project's id must match");
  });

  test("is 1 if NATS is missing", async () => {
    const child = penstock("project", "list", "--data-dir", temporaryFolder());
    expect(await ended(child)).toBe(1);
    expect(child.said.err).toContain("cannot find NATS");
  });

  test("is 0 for --help, which lists the settings", async () => {
    const child = penstock("serve", "--help");
    expect(await ended(child)).toBe(0);
    expect(child.said.out).toContain("PENSTOCK_STREAM_BYTES_MAX");
  });
});
