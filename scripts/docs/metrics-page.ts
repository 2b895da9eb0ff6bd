// docs/reference/metrics.md, from the table of metrics.

import { metricTable } from "../../src/gateway/admin/metrics/metric-table.ts";
import type { MetricRow } from "../../src/platform/metrics/table.ts";
import { effectsMetricTable } from "../../src/readers/effects/metrics/metric-table.ts";
import { sinkMetricTable } from "../../src/readers/sinks/metrics/sink-metrics.ts";
import { generatedFrom, marked } from "./words.ts";

const introduction = `# Metrics

${generatedFrom("src/gateway/admin/metrics/metric-table.ts")}

\`GET /metrics\` on the admin port returns these metrics in the Prometheus text format. [Watch it](../guides/operations.md#watch-it) explains the important ones, and \`deploy/\` has the dashboard and the alerts.

- The default Node metrics of prom-client (\`process_*\`, \`nodejs_*\`) are included.
- No label contains a project, a key or a path chosen by a client.
- With \`PENSTOCK_WORKERS\` above 1, the page covers all workers. Counters and histograms are summed; the last column states how gauges are combined. The counts of a worker remain after it has ended, except those of the last second before a SIGKILL. \`process_*\` and \`nodejs_*\` appear once per process, with a label \`worker\` (\`0\`, \`1\`, …, \`supervisor\`).`;

const effectsIntroduction = `## Of the effects

\`penstock effects\` has its own \`/metrics\`, at \`PENSTOCK_EFFECTS_HOST\` and \`PENSTOCK_EFFECTS_PORT\`, including the default Node metrics. Counters cover data that its database has committed since the process started.`;

const sinkIntroduction = `## Of a sink

\`penstock sink\` has its own \`/metrics\`, at \`PENSTOCK_SINK_HOST\` and \`PENSTOCK_SINK_PORT\`, including the default Node metrics. Counters cover data that its target has committed since the process started.`;

/** The table of a command that runs as one process. */
function ownTable(introduction: string, table: Readonly<Record<string, MetricRow>>): string {
  const rows = Object.entries(table).map(
    ([name, { type, help }]) => `| \`${name}\` | ${type} | ${marked(help)} |`,
  );
  return `${introduction}

| Metric | Type | Meaning |
|---|---|---|
${rows.join("\n")}
`;
}

export function metricsPage(): string {
  const rows = Object.entries(metricTable).map(
    ([name, row]: [string, MetricRow]) =>
      `| \`${name}\` | ${row.type} | ${marked(row.help)} | ${row.across ?? "sum"} |`,
  );
  return `${introduction}

| Metric | Type | Meaning | With several workers |
|---|---|---|---|
${rows.join("\n")}

${ownTable(effectsIntroduction, effectsMetricTable)}
${ownTable(sinkIntroduction, sinkMetricTable)}`;
}
