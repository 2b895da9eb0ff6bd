import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../kit/processes.ts";

const script = path.resolve(import.meta.dirname, "../../scripts/audit.mjs");

interface Outcome {
  readonly status: number | null;
  readonly said: string;
  readonly askedIn: readonly string[];
}

function auditSaying(answer: unknown, status = 1): Outcome {
  const folder = path.join(temporaryFolder(), "bin");
  mkdirSync(folder);
  writeFileSync(
    path.join(folder, "answer.json"),
    typeof answer === "string" ? answer : JSON.stringify(answer),
  );
  const lines = [
    "#!/bin/sh",
    'pwd >> "$(dirname "$0")/asked-in"',
    `cat ${JSON.stringify(path.join(folder, "answer.json"))}`,
    `exit ${status}`,
    "",
  ];
  writeFileSync(path.join(folder, "npm"), lines.join("\n"), { mode: 0o755 });
  const env = { ...process.env, PATH: `${folder}:${process.env["PATH"] ?? ""}` };
  const done = spawnSync(process.execPath, [script], { env, encoding: "utf8" });
  const askedIn = readFileSync(path.join(folder, "asked-in"), "utf8").trim().split("\n");
  return { status: done.status, said: done.stdout, askedIn };
}

function finding(
  name: string,
  severity: string,
  via: unknown[] = [{ title: `what is wrong with ${name}` }],
): object {
  return {
    [name]: { name, severity, range: "<=1.2.3", via, fixAvailable: severity === "critical" },
  };
}

test("npm run audit checks every lock file from which set-up installs packages", () => {
  const { askedIn } = auditSaying({ auditReportVersion: 2, vulnerabilities: {} }, 0);
  const root = path.resolve(import.meta.dirname, "../..");
  expect(askedIn).toEqual([root, path.join(root, "scripts/duckdb")]);
});

describe("npm run audit", () => {
  test("passes if no high or critical vulnerability is found", () => {
    const clean = auditSaying({ auditReportVersion: 2, vulnerabilities: {} }, 0);
    expect(clean).toMatchObject({ status: 0, said: expect.stringContaining("0 lesser ones") });
    const lesser = auditSaying({
      auditReportVersion: 2,
      vulnerabilities: finding("mild", "moderate"),
    });
    expect(lesser).toMatchObject({
      status: 0,
      said: expect.stringContaining("1 lesser ones"),
    });
  });

  test("fails for high and critical vulnerabilities", () => {
    const vulnerabilities = {
      ...finding("mild", "low"),
      ...finding("bad", "high"),
      ...finding("worse", "critical", ["bad"]),
    };
    const { status, said } = auditSaying({ auditReportVersion: 2, vulnerabilities });
    expect(status).toBe(1);
    expect(said).toContain("high: bad <=1.2.3: what is wrong with bad (no fix yet)");
    expect(said).toContain("critical: worse <=1.2.3: through bad (npm audit fix");
    expect(said).toContain("failed: 2 high or critical");
    expect(said).not.toContain("mild");
  });

  test("passes with a report if the registry cannot answer", () => {
    const url = "https://registry.invalid/-/npm/v1/security/advisories/bulk";
    const none = auditSaying({
      message: `405 Method Not Allowed - POST ${url}`,
      statusCode: 405,
      uri: url,
    });
    expect(none).toMatchObject({
      status: 0,
      said: expect.stringContaining("not checked: 405 Method Not Allowed"),
    });
    const offline = auditSaying({
      message: `request to ${url} failed, reason: connect ECONNREFUSED 127.0.0.1:1`,
    });
    expect(offline).toMatchObject({
      status: 0,
      said: expect.stringContaining("not checked: request to … failed, reason: connect"),
    });
    expect(none.said + offline.said).not.toContain("registry.invalid");
  });

  const error = { summary: "", detail: "" };
  const url = "https://registry.invalid/-/npm/v1/security/advisories/bulk";
  test.each<[string, unknown, string]>([
    ["does not respond", { message: `network timeout at: ${url}`, error }, "network timeout"],
    [
      "returns a web page",
      {
        message: `invalid json response body at ${url} reason: Unexpected token '<', "<html>" is not valid JSON`,
        error,
      },
      "invalid json",
    ],
  ])("passes for a registry that %s", (_, answer, reason) => {
    const { status, said } = auditSaying(answer);
    expect(status).toBe(0);
    expect(said).toMatch(new RegExp(`not checked: .*${reason}`));
    expect(said).not.toContain("registry.invalid");
  });

  test.each<[string, unknown]>([
    ["nothing", ""],
    ["text", "no JSON"],
    ["no lock file", { error: { code: "ENOLOCK" } }],
    ["no lock file, with a message", { message: "no lock file", error: { code: "ENOLOCK" } }],
    [
      "an npm error unrelated to the registry",
      { error: { summary: "advisories is not iterable" } },
    ],
  ])("fails if the output of npm is invalid: %s", (_, answer) => {
    const { status, said } = auditSaying(answer);
    expect(status).toBe(1);
    expect(said).toContain("failed:");
  });
});
