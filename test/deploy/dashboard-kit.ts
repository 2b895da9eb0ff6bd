import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "./prometheus-kit.ts";

interface Target {
  readonly expr: string;
  readonly datasource: object;
}

export interface DashboardPanel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly datasource?: object;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly fieldConfig?: { readonly defaults: { readonly unit: string } };
  readonly targets?: readonly Target[];
}

export function dashboardPanels(): DashboardPanel[] {
  const file = path.join(root, "deploy/grafana/dashboards/penstock.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { panels: DashboardPanel[] }).panels;
}

export function dashboardQueries(): { title: string; expr: string }[] {
  return dashboardPanels().flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ title, expr })),
  );
}
