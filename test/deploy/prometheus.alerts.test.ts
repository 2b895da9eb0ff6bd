import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { temporaryFolder } from "../kit/processes.ts";
import { testProgram } from "../kit/test-program.ts";
import { fetchMsMax, prometheusDir, promtool, readRules, root } from "./prometheus-kit.ts";

interface Scenario {
  readonly name: string;
  readonly promql_expr_test: readonly {
    expr: string;
    exp_samples: readonly { labels: string }[];
  }[];
}

const testFiles = readdirSync(path.join(prometheusDir, "tests"));
const scenarios = testFiles.flatMap(
  (file) =>
    (
      parse(readFileSync(path.join(prometheusDir, "tests", file), "utf8")) as {
        tests: readonly Scenario[];
      }
    ).tests,
);
const alerts = readRules().flatMap((rule) =>
  rule.alert === undefined ? [] : [{ ...rule, alert: rule.alert }],
);
const runbook = readFileSync(path.join(root, "deploy/runbook.md"), "utf8");

beforeAll(async () => void (await testProgram("prometheus")), fetchMsMax);

describe("the alerts", () => {
  test("are valid according to promtool", async () => {
    const folder = temporaryFolder();
    cpSync(prometheusDir, folder, { recursive: true });
    writeFileSync(path.join(folder, "read-token"), "the-generated-read-token\n");
    const { code, out } = await promtool("check", "config", path.join(folder, "prometheus.yml"));
    expect(code, out).toBe(0);
    expect(out).toContain(`${alerts.length} rules found`);
  });

  test.each(testFiles)(
    "fire and stay quiet as specified in %s",
    { timeout: 120_000 },
    async (file) => {
      const { code, out } = await promtool("test", "rules", `tests/${file}`);
      expect(code, out).toBe(0);
    },
  );

  describe.each(alerts)("$alert", ({ alert, labels, annotations }) => {
    test("fires only at the specified times of its scenarios", () => {
      const own = scenarios
        .filter(({ name }) => name.startsWith(`${alert}: `))
        .flatMap((found) => found.promql_expr_test);
      const wouldShowIt = [
        'ALERTS{alertstate="firing"}',
        `severity="${labels?.["severity"]}"`,
        `"${alert}"`,
      ];
      const looksAt = own.filter(({ expr }) => wouldShowIt.some((part) => expr.includes(part)));
      const isNamed = ({ labels: text }: { labels: string }) =>
        text.includes(`alertname="${alert}"`);
      expect(looksAt.some(({ exp_samples }) => exp_samples.some(isNamed))).toBe(true);
      expect(looksAt.some(({ exp_samples }) => !exp_samples.some(isNamed))).toBe(true);
    });

    test("states its severity, its meaning and the first step", () => {
      expect(["page", "ticket"]).toContain(labels?.["severity"]);
      expect(annotations?.["summary"]?.replaceAll(/\{\{.*?\}\}/g, "x")).toMatch(/^.{15,100}$/);
      expect(annotations?.["description"]).toMatch(/\b[Ff]irst\b/);
      expect(annotations?.["runbook"]).toBe(`deploy/runbook.md#${alert.toLowerCase()}`);
      // Alertmanager would show a relative link, which is broken.
      expect(annotations?.["runbook_url"]).toBeUndefined();
      const sections = runbook.split(/^#+ /m);
      const section = sections.find((text) => text.startsWith(`${alert}\n`)) ?? "";
      expect(section).toMatch(
        new RegExp(`^${labels?.["severity"] === "page" ? "Page" : "Ticket"}\\.`, "m"),
      );
      for (const part of ["**Means**", "**Look at**", "**Do**"]) expect(section).toContain(part);
    });
  });

  test("are counted by severity in the operations guide", () => {
    const severe = (severity: string) =>
      alerts.filter(({ labels }) => labels?.["severity"] === severity).length;
    const guide = readFileSync(path.join(root, "docs/guides/operations.md"), "utf8");
    expect(guide).toContain(`${alerts.length} alerts`);
    expect(guide).toContain(`${severe("page")} alerts notify the person on call`);
    expect(guide).toContain(`${severe("ticket")} alerts open a ticket`);
  });

  test("have one section each in the runbook", () => {
    const sections = [...runbook.matchAll(/^### (\w+)$/gm)].map((match) => match[1]);
    expect(sections.sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  });
});
