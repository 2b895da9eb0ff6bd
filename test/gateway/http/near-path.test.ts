import { describe, expect, test } from "vitest";
import { nearPath } from "../../../src/gateway/http/near-path.ts";
import { connectTo, post, startTestServer } from "../../kit/http-server.ts";

const paths = [
  "/capture",
  "/capture/",
  "/batch",
  "/batch/",
  "/e",
  "/e/",
  "/i/v0/e",
  "/i/v0/e/",
  "/robots.txt",
];

describe("a path that is near is named", () => {
  test.each([
    ["/captur", "/capture/"],
    ["/capturre/", "/capture/"],
    ["/CAPTURE/", "/capture/"],
    ["//capture//", "/capture/"],
    ["/capture/x", "/capture/"],
    ["/v1/batch", "/batch/"],
    ["/v1/batches", "/batch/"],
    ["/bacth", "/batch/"],
    ["/api/event", "/capture/"],
    ["/api/events/", "/capture/"],
    ["/ph/i/v0/e", "/i/v0/e/"],
    ["/i/v1/e", "/i/v0/e/"],
    ["/ingest/e/", "/e/"],
    ["/robot.txt", "/robots.txt"],
  ])("%s: %s", (path, near) => {
    expect(nearPath(path, paths)).toBe(near);
  });

  test.each(["/", "", "/x", "/admin", "/wp-login.php", `/${"x".repeat(200)}`, "/static/thing.js"])(
    "%s is near to none",
    (path) => {
      expect(nearPath(path, ["/capture", "/capture/", "/batch", "/batch/", "/e", "/e/"])).toBe(
        undefined,
      );
    },
  );

  test("only a path that is there is named", () => {
    expect(nearPath("/api/events", ["/e"])).toBe(undefined);
    expect(nearPath("/E", ["/e"])).toBe("/e");
  });

  const sinks = ["/s", "/report", "/flags", "/i/v1/logs", "/docs/errors"];

  test.each([
    ["/api/projects/1/s/", undefined],
    ["/x/report", undefined],
    ["/report/x", undefined],
    ["/v1/logs", undefined],
    ["/flgz", undefined],
    ["/z", undefined],
    ["/ingest/flags/batch", "/batch/"],
    ["/flag", "/flags"],
    ["/Report//", "/report"],
    ["/doc/errors", "/docs/errors"],
  ])("at %s nobody is sent to where events are thrown away: %s", (path, near) => {
    expect(nearPath(path, paths, sinks)).toBe(near);
  });

  test("a path that takes events goes before one as near that takes none", () => {
    expect(nearPath("/batcs", ["/batch/"], ["/batch2", "/bats"])).toBe("/batch/");
  });

  test.each([
    ["/captre/", "did you mean /capture/?"],
    ["/static/arry.js", "did you mean /static/array.js?"],
  ])(
    "of those of %s that come in one turn, some are told what is near, and in the next some again",
    async (path, meant) => {
      const files = { folder: "", version: "1.2.3", names: ["array.js"], answer: () => undefined };
      const server = await startTestServer({ files });
      const wires = await Promise.all(Array.from({ length: 60 }, () => connectTo(server)));
      for (let turn = 0; turn < 2; turn++) {
        // All are there when the server looks.
        for (const wire of wires) wire.write(post("{}").toString().replace("/capture/", path));
        const details = await Promise.all(
          wires.map(async (wire) => JSON.parse((await wire.reply()).body).detail as string),
        );
        expect(details.every((detail) => detail.startsWith(`There is nothing at ${path}`))).toBe(
          true,
        );
        const told = details.filter((detail) => detail.endsWith(meant)).length;
        expect(told).toBeGreaterThan(0);
        expect(told).toBeLessThan(wires.length);
      }
    },
  );
});
