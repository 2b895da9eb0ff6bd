import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { checkScripts } from "../../../src/commands/doctor/files.ts";
import { linesOf } from "../../../src/commands/doctor/finding.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { doctor, expectOne } from "./doctor-kit.ts";

test("doctor puts no colon after a question mark", () => {
  const finding = { check: "c", level: "fail", found: "did you mean A?", fix: "do" } as const;
  expect(linesOf([finding], { ok: 0, warn: 0, fail: 1 })).toContain("did you mean A? Fix: do");
});

describe("doctor", () => {
  test("reports the version and folder of the SDK's scripts", async () => {
    const folder = temporaryFolder();
    mkdirSync(path.join(folder, "dist"));
    writeFileSync(path.join(folder, "package.json"), '{"version":"1.2.3"}');
    writeFileSync(path.join(folder, "dist", "array.js"), "1");
    const data = path.join(temporaryFolder(), "data");
    const named = await doctor({ PENSTOCK_DATA_DIR: data, PENSTOCK_POSTHOG_JS: folder });
    expect(expectOne(named, "scripts", "ok").found).toBe(`posthog-js 1.2.3 from ${folder}`);
    const off = await doctor({ PENSTOCK_DATA_DIR: data, PENSTOCK_POSTHOG_JS: "off" });
    expect(expectOne(off, "scripts", "ok").found).toBe("none: PENSTOCK_POSTHOG_JS is off");
  });

  test("warns of missing SDK scripts and fails on unreadable ones", () => {
    const without = checkScripts(() => undefined, undefined);
    expect([without.level, without.found]).toEqual([
      "warn",
      expect.stringContaining("pages with the HTML snippet"),
    ]);
    expect(without.fix).toContain("PENSTOCK_POSTHOG_JS=");
    const broken = checkScripts(() => {
      throw new Error("EACCES");
    }, "/opt/posthog-js");
    expect([broken.level, broken.found]).toEqual(["fail", "posthog-js cannot be read: EACCES"]);
  });
});
