// Puts the dashboard together. Run by hand, `node_modules/.bin/node deploy/grafana/dashboard.ts`,
// it writes dashboards/penstock.json, which is what Grafana reads; a test says when that is not
// current.

import { writeFileSync } from "node:fs";
import path from "node:path";
import { effectsRows } from "./effects-rows.ts";
import { datasource, layOut } from "./panels.ts";
import { requestRows } from "./request-rows.ts";
import { sinkRows } from "./sink-rows.ts";
import { storeRows } from "./store-rows.ts";

const jsonFile = path.join(import.meta.dirname, "dashboards", "penstock.json");

/** A variable whose values are a label's. */
function labelVariable(name: string, label: string, query: string): object {
  return {
    name,
    label,
    type: "query",
    datasource,
    definition: query,
    query: { query, refId: name },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: ".+",
    current: { text: ["All"], value: ["$__all"] },
  };
}

/** The text of dashboards/penstock.json. */
export function dashboardText(): string {
  const dashboard = {
    uid: "penstock",
    title: "Penstock",
    description: "Written by deploy/grafana/dashboard.ts: change it there.",
    tags: ["penstock"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: "30s",
    timezone: "browser",
    time: { from: "now-3h", to: "now" },
    templating: {
      list: [
        {
          name: "datasource",
          label: "Data source",
          type: "datasource",
          query: "prometheus",
          refresh: 1,
        },
        labelVariable("job", "Job", "label_values(penstock_nats_connected, job)"),
        labelVariable(
          "instance",
          "Gateway",
          'label_values(penstock_nats_connected{job=~"$job"}, instance)',
        ),
      ],
    },
    annotations: { list: [] },
    links: [],
    panels: layOut([...requestRows, ...storeRows, ...effectsRows, ...sinkRows]),
  };
  return `${JSON.stringify(dashboard, undefined, 2)}\n`;
}

if (process.argv[1] === import.meta.filename) writeFileSync(jsonFile, dashboardText());
