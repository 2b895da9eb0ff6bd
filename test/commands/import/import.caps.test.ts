import { expect, test } from "vitest";
import { gatewayForFile } from "../../kit/for-file.ts";
import { fileWith, linesOf, runImport } from "./import-kit.ts";

const gateway = await gatewayForFile({
  env: { PENSTOCK_BODY_BYTES_MAX: "65536", PENSTOCK_REQUEST_EVENTS_MAX: "100" },
});

test("import halves a request that is too large", async () => {
  const project = await gateway.project();
  const large = linesOf(1, { properties: { x: "x".repeat(70_000) } });
  const file = fileWith(linesOf(700) + large + linesOf(40));
  const { out, err } = await runImport(["--url", gateway.url, "--key", project.key, file]);
  expect(out).toContain("740 events stored, 1 not");
  expect(err).toContain("splitting requests (see --batch-bytes): 413 ");
  expect(err).toContain(`${file}:701: not stored: too_large: 413 body_too_large`);
  const events = await gateway.events(project, "historical");
  const expected = [...Array(700).keys(), ...Array(40).keys()];
  expect(events.map((event) => event.properties["n"])).toEqual(expected);
});
