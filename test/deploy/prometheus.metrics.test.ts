import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { dashboardText } from "../../deploy/grafana/dashboard.ts";
import { metricTable as gatewayMetrics } from "../../src/gateway/admin/metrics/metric-table.ts";
import { effectsMetricTable } from "../../src/readers/effects/metrics/metric-table.ts";
import { sinkMetricTable } from "../../src/readers/sinks/metrics/sink-metrics.ts";
import { type DashboardPanel, dashboardPanels, dashboardQueries } from "./dashboard-kit.ts";
import { readRules, root } from "./prometheus-kit.ts";

const metrics = Object.entries({
  ...gatewayMetrics,
  ...effectsMetricTable,
  ...sinkMetricTable,
});
const grafanaDir = path.join(root, "deploy/grafana");
const rules = readRules();
const expressions = [
  ...dashboardQueries().map(({ expr }) => expr),
  ...rules.map(({ expr }) => expr),
];
const shown = new Set(
  expressions.flatMap((expr) => expr.match(/\bpenstock_\w+|\bjob\w*:[\w:]+/g) ?? []),
);

describe("the dashboard", () => {
  test.each(metrics)(
    "shows the metric %s, unless only an alert uses the metric",
    (name, { type }) => {
      const series = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
      expect(series.some((suffix) => shown.has(name + suffix))).toBe(true);
    },
  );

  test("uses only existing metrics and recording rules", () => {
    const recorded = rules.flatMap(({ record }) => record ?? []);
    const known = new Set([
      ...recorded,
      ...metrics.flatMap(([name]) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]),
    ]);
    expect([...shown].filter((name) => !known.has(name))).toEqual([]);
    expect(recorded.filter((name) => !shown.has(name))).toEqual([]);
  });

  test("equals the output of node_modules/.bin/node deploy/grafana/dashboard.ts", () => {
    expect(readFileSync(path.join(grafanaDir, "dashboards/penstock.json"), "utf8")).toBe(
      dashboardText(),
    );
  });

  test("has a description, a unit and a data source in each panel", () => {
    const panels = dashboardPanels();
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = new Set<string>();
    for (const panel of panels) {
      for (const cell of cellsOf(panel)) {
        expect(cells.has(cell), `${panel.title} at ${cell}`).toBe(false);
        cells.add(cell);
      }
      if (panel.type === "row") continue;
      expect(panel.description, panel.title).toMatch(/^.{20,}\.$/);
      expect(panel.fieldConfig?.defaults.unit, panel.title).toMatch(/\w/);
      expect(panel.targets?.length, panel.title).toBeGreaterThan(0);
      for (const { datasource } of [panel, ...(panel.targets ?? [])]) {
        // biome-ignore lint/suspicious/noTemplateCurlyInString: Grafana's own
        expect(datasource, panel.title).toEqual({ type: "prometheus", uid: "${datasource}" });
      }
    }
  });

  test("is provisioned in Grafana with its data source and folder", () => {
    const read = (file: string): Record<string, Record<string, unknown>[]> =>
      parse(readFileSync(path.join(grafanaDir, "provisioning", file), "utf8"));
    expect(read("datasources/prometheus.yaml")["datasources"]).toMatchObject([
      { type: "prometheus", isDefault: true, jsonData: { timeInterval: "15s" } },
    ]);
    expect(read("dashboards/penstock.yaml")["providers"]).toMatchObject([
      { type: "file", options: { path: "/var/lib/grafana/dashboards" } },
    ]);
    expect(readdirSync(path.join(grafanaDir, "dashboards"))).toEqual(["penstock.json"]);
  });
});

function cellsOf({ gridPos: { x, y, w, h } }: DashboardPanel): string[] {
  expect(x + w).toBeLessThanOrEqual(24);
  return Array.from(
    { length: w * h },
    (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`,
  );
}
