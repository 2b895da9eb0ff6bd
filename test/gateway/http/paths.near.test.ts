import { describe, expect, test } from "vitest";
import { nearPath } from "../../../src/gateway/http/paths.ts";
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

describe("the suggested path in a 404 answer", () => {
  test.each([
    ["/captur", "/capture/"],
    ["/capturre/", "/capture/"],
    ["/CAPTURE/", "/capture/"],
    ["//capture//", "/capture/"],
    ["/capture/x", "/capture/"],
    ["/v1/batch", "/batch/"],
    ["/bacth", "/batch/"],
    ["/ph/i/v0/e", "/i/v0/e/"],
    ["/i/v1/e", "/i/v0/e/"],
    ["/ingest/e/", "/e/"],
    ["/robot.txt", "/robots.txt"],
  ])("for %s is %s", (path, near) => {
    expect(nearPath(path, paths)).toBe(near);
  });

  test.each(["/", "", "/x", "/admin", "/wp-login.php", `/${"x".repeat(200)}`, "/static/thing.js"])(
    "is absent for %s",
    (path) => {
      expect(nearPath(path, ["/capture", "/capture/", "/batch", "/batch/", "/e", "/e/"])).toBe(
        undefined,
      );
    },
  );

  test("is the OpenTelemetry path if an exporter uses its default path", async () => {
    const server = await startTestServer();
    const wire = await connectTo(server);
    wire.write(post("{}").toString().replace("/capture/", "/v1/traces"));
    expect(JSON.parse((await wire.reply()).body).detail).toBe(
      "There is nothing at /v1/traces: events go to /capture/ or /batch/; did you mean /i/v0/ai/otel?",
    );
  });

  test("is always a path that exists", () => {
    expect(nearPath("/batch", ["/e"])).toBe(undefined);
    expect(nearPath("/E", ["/e"])).toBe("/e");
  });

  test.each([
    ["/captre/", "did you mean /capture/?"],
    ["/static/arry.js", "did you mean /static/array.js?"],
  ])("is computed for a limited number of answers per turn: %s", async (path, meant) => {
    const files = { folder: "", version: "1.2.3", names: ["array.js"], answer: () => undefined };
    const server = await startTestServer({ files });
    const wires = await Promise.all(Array.from({ length: 60 }, () => connectTo(server)));
    for (let turn = 0; turn < 2; turn++) {
      for (const wire of wires) wire.write(post("{}").toString().replace("/capture/", path));
      const details = await Promise.all(
        wires.map(async (wire) => JSON.parse((await wire.reply()).body).detail as string),
      );
      expect(details.every((detail) => detail.startsWith(`There is nothing at ${path}`))).toBe(
        true,
      );
      const suggested = details.filter((detail) => detail.endsWith(meant)).length;
      expect(suggested).toBeGreaterThan(0);
      expect(suggested).toBeLessThan(wires.length);
    }
  });
});
