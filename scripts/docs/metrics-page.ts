// docs/reference/metrics.md, from the table of metrics.

import { metricTable } from "../../src/gateway/admin/metrics/metric-table.ts";
import type { MetricRow } from "../../src/platform/metrics/table.ts";
import { effectsMetricTable } from "../../src/readers/effects/metrics/metric-table.ts";
import { sinkMetricTable } from "../../src/readers/sinks/metrics/metric-table.ts";
import { generatedFrom, marked } from "./words.ts";

const introduction = `# Metrics

${generatedFrom("src/gateway/admin/metrics/metric-table.ts")}

\`GET /metrics\` on the admin port, in the form of Prometheus. [Watch it](../guides/operations.md#watch-it) says what to look at, and \`deploy/\` has the dashboard and the alerts.

- The Node defaults of prom-client (\`process_*\`, \`nodejs_*\`) come on top.
- No label ever holds a project, a key or a path that a client chose.
- With \`PENSTOCK_WORKERS\` above 1 the page is one of all workers. Counters and histograms are summed, and gauges are as the last column says. What a worker counted stays counted after it died, except the last second before a SIGKILL. \`process_*\` and \`nodejs_*\` come once for each process, with a label \`worker\` (\`0\`, \`1\`, …, \`supervisor\`).`;

const effectsIntroduction = `## Of the effects

\`penstock effects\` has its own \`/metrics\`, at \`PENSTOCK_EFFECTS_HOST\` and \`PENSTOCK_EFFECTS_PORT\`, with the Node defaults on top. Counters are of what its database has taken since the process started.`;

const sinkIntroduction = `## Of a sink

\`penstock sink\` has its own \`/metrics\`, at \`PENSTOCK_SINK_HOST\` and \`PENSTOCK_SINK_PORT\`, with the Node defaults on top. Counters are of what its target has taken since the process started.`;

/** The table of a process that is never several. */
function ownTable(introduction: string, table: Readonly<Record<string, MetricRow>>): string {
  const rows = Object.entries(table).map(
    ([name, { type, help }]) => `| \`${name}\` | ${type} | ${marked(help)} |`,
  );
  return `${introduction}

| Metric | Type | What |
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

| Metric | Type | What | Of several workers |
|---|---|---|---|
${rows.join("\n")}

${ownTable(effectsIntroduction, effectsMetricTable)}
${ownTable(sinkIntroduction, sinkMetricTable)}`;
}
