// The pages of docs/reference/ that are generated from tables in the code. A test compares them
// with the committed files.

import type { Argument, Command, Option } from "commander";
import { commandLine } from "../../src/app/command-line.ts";
import type { CommandContext } from "../../src/commands/context.ts";
import { allSettings, upDefaults } from "../../src/commands/settings.ts";
import { metricTable } from "../../src/gateway/admin/metrics/metric-table.ts";
import { retryWords } from "../../src/gateway/http/pages/pages.ts";
import {
  type ErrorCode,
  type ErrorRow,
  errorTable,
  itemErrorCodes,
} from "../../src/platform/base/errors.ts";
import { flagOf, variableOf } from "../../src/platform/base/setting-name.ts";
import { dropTable, warningTable } from "../../src/platform/base/warnings.ts";
import type { MetricRow } from "../../src/platform/metrics/table.ts";
import { type SettingName, settings } from "../../src/platform/settings/config.ts";
import { effectsMetricTable } from "../../src/readers/effects/metrics/metric-table.ts";
import { sinkMetricTable } from "../../src/readers/sinks/metrics/sink-metrics.ts";
import { rulesSchema } from "../../src/rules/rules-schema.ts";
import { eventPage } from "./event-page.ts";
import { bytesText, generatedFrom, marked, sentence } from "./words.ts";

export function generatedPages(): Map<string, string> {
  return new Map([
    ["docs/reference/errors.md", errorsPage()],
    ["docs/reference/event-fields.md", eventPage()],
    ["docs/reference/settings.md", settingsPage()],
    ["docs/reference/metrics.md", metricsPage()],
    ["docs/reference/commands.md", commandsPage()],
    ["docs/reference/rules.schema.json", `${JSON.stringify(rulesSchema(), undefined, 2)}\n`],
  ]);
}

const errorsIntroduction = `# Errors and warnings

${generatedFrom("src/platform/base/errors.ts")}

All errors are \`application/problem+json\` (RFC 9457): \`{"type","title","status","code","detail"}\`. In [the newer protocol](newer-protocol.md) they are \`{"error","error_description"}\`. [Errors that the HTTP library detects](http.md#the-protocol) get a short HTML page instead.

\`type\` links to the description of the code at \`GET /docs/errors\` of the gateway.

- **A 4xx other than 429 is final**: nothing of the request is stored, and a retry does not help. Most SDKs give up.
- **A 429** means that the project is over a quota that an operator has set. Nothing of the request is stored; retry it after \`Retry-After\`, which is 1 to 60 seconds, with jitter.
- **A 503 is temporary**: retry the request. Some of it may be stored already. Temporary errors are always 503, because posthog-js gives up on any 4xx.

\`Retry-After\` of a 503:

| Code | \`Retry-After\` |
|---|---|
| \`unavailable\`, \`timeout\`, \`store_full\` | 1 to 1.5 times the period in which the stream has stored nothing; 1 or 2 seconds at first, 60 at most. If the project of the request is not known, the period in which no stream has stored anything |
| \`overloaded\` | the same during such an outage, else 1 to 5 seconds |
| \`project_full\` | up to 60 seconds |
| other codes | 1 to 5 seconds |`;

function errorsPage(): string {
  const codes = Object.keys(errorTable) as ErrorCode[];
  const statuses = [...new Set(codes.map((code) => errorTable[code].status))];
  const overview = codes.map((code) => {
    const { status, title } = errorTable[code];
    return `| ${status} | [\`${code}\`](#${code}) | ${marked(title)} | ${marked(retryWords(status))} |`;
  });
  const sections = statuses.map((status) => {
    const own = codes.filter((code) => errorTable[code].status === status);
    return `## ${status}\n\n${own.map(errorText).join("\n\n")}`;
  });
  return `${[
    errorsIntroduction,
    `| Status | Code | Meaning | Retry |\n|---|---|---|---|\n${overview.join("\n")}`,
    ...sections,
    `## Skipped events of a 200\n\n\`warnings\` lists these codes with the index of the event. The event is not stored and counts as \`dropped\`. The other events are stored.\n\n${notes(dropTable)}`,
    `## Stored with a warning\n\n\`warnings\` lists these codes too; in the newer protocol they are in the \`details\` of a \`warning\`. The event is stored and counts as \`accepted\`, but something was missing or changed.\n\n${notes(warningTable)}`,
  ].join("\n\n")}\n`;
}

function errorText(code: ErrorCode): string {
  const { status, title, when, remedy } = errorTable[code];
  const isOfItem =
    (itemErrorCodes as readonly ErrorCode[]).includes(code) && !when.includes("newer protocol");
  const item = isOfItem
    ? "\n\nIn a batch, the error concerns one event, which `errors` lists. The other events are stored."
    : "";
  return `### ${code}\n\n**${marked(title)}.** ${sentence(when)}\n\n${marked(remedy)}${item}\n\nRetry: ${marked(retryWords(status))}.`;
}

function notes(table: Record<string, Pick<ErrorRow, "when" | "remedy">>): string {
  const rows = Object.entries(table).map(
    ([code, { when, remedy }]) => `### ${code}\n\n${sentence(when)}\n\n${marked(remedy)}`,
  );
  return rows.join("\n\n");
}

const settingsIntroduction = `# Settings

${generatedFrom("src/platform/settings/config.ts")}

Settings are environment variables or flags of the same name: \`PENSTOCK_BODY_BYTES_MAX\` is \`--body-bytes-max\`. The variables of [OpenTelemetry](../guides/opentelemetry.md) have its names, which begin with \`OTEL_\`. A flag takes precedence over a variable, and a variable over the default.

- All settings are checked at start, and every error is listed. An unknown \`PENSTOCK_*\` variable is an error, and the message suggests a setting with a similar name. \`PENSTOCK_TEST_*\` is reserved for the project's tests.
- Give secrets (\`PENSTOCK_NATS_TOKEN\`, a password in \`PENSTOCK_NATS_URL\`, \`OTEL_EXPORTER_OTLP_HEADERS\`) as variables, because flags are visible in the list of processes.
- Limits per process apply to each worker.
- \`${variableOf("host")}\` is ${upDefaults.host} for \`up\`, because the key of its demo project is public.`;

function settingsPage(): string {
  const rows = (Object.keys(settings) as SettingName[]).map((name) => {
    const { fallback, unit, why } = settings[name];
    const standard = fallback === undefined ? "unset" : `\`${fallback}\`${inWords(fallback, unit)}`;
    return `| \`${variableOf(name)}\` | ${standard} | ${marked(unit)} | ${sentence(why)} |`;
  });
  return `${settingsIntroduction}

| Variable | Default | Unit | Purpose |
|---|---|---|---|
${rows.join("\n")}
`;
}

function inWords(text: string, unit: string): string {
  return unit.startsWith("bytes") ? ` (${bytesText(Number(text))})` : "";
}

const metricsIntroduction = `# Metrics

${generatedFrom("src/gateway/admin/metrics/metric-table.ts")}

\`GET /metrics\` on the admin port returns these metrics in the Prometheus text format. [Monitor the gateway](../guides/operations.md#monitor-the-gateway) explains the important ones, and \`deploy/\` has the dashboard and the alerts.

- The default Node metrics of prom-client (\`process_*\`, \`nodejs_*\`) are included.
- No label contains a key or a path chosen by a client. Only the two metrics of rules and schemas have a label for the project.
- With \`PENSTOCK_WORKERS\` above 1, the page covers all workers. Counters and histograms are summed; the last column states how gauges are combined. The counts of a worker remain after it has ended, except the counts of the last second before a SIGKILL. \`process_*\` and \`nodejs_*\` appear once per process, with a label \`worker\` (\`0\`, \`1\`, …, \`supervisor\`).`;

const effectsIntroduction = `## Of the effects

\`penstock effects\` has its own \`/metrics\`, at \`PENSTOCK_EFFECTS_HOST\` and \`PENSTOCK_EFFECTS_PORT\`, including the default Node metrics. Counters cover data that its database has committed since the process started.`;

const sinkIntroduction = `## Of a sink

\`penstock sink\` has its own \`/metrics\`, at \`PENSTOCK_SINK_HOST\` and \`PENSTOCK_SINK_PORT\`, including the default Node metrics. Counters cover data that its target has committed since the process started.`;

function ownTable(heading: string, table: Readonly<Record<string, MetricRow>>): string {
  const rows = Object.entries(table).map(
    ([name, { type, help }]) => `| \`${name}\` | ${type} | ${marked(help)} |`,
  );
  return `${heading}

| Metric | Type | Meaning |
|---|---|---|
${rows.join("\n")}
`;
}

function metricsPage(): string {
  const rows = Object.entries(metricTable).map(
    ([name, row]: [string, MetricRow]) =>
      `| \`${name}\` | ${row.type} | ${marked(row.help)} | ${row.across ?? "sum"} |`,
  );
  return `${metricsIntroduction}

| Metric | Type | Meaning | With several workers |
|---|---|---|---|
${rows.join("\n")}

${ownTable(effectsIntroduction, effectsMetricTable)}
${ownTable(sinkIntroduction, sinkMetricTable)}`;
}

const commandsIntroduction = `# Commands

${generatedFrom("src/app/command-line.ts")}

In a checkout, run \`./penstock <command>\`; with [the npm package](../../deploy/README.md#the-package), \`npx penstock <command>\`. Every command takes \`--help\`. \`--version\` prints the version.

| Exit code | Meaning |
|---|---|
| 0 | success, including an orderly stop by SIGINT, SIGTERM or SIGHUP |
| 1 | failure, also an export or import that was stopped before its end |
| 2 | wrong usage: an invalid argument, flag or setting; nothing was done |
| 130 | a stop signal interrupted \`project remove\` or \`erase\`; the message states how to continue |`;

const settingFlags = new Set(allSettings.map(flagOf));

function commandsPage(): string {
  const program = commandLine({} as CommandContext);
  return `${commandsIntroduction}\n\n${sectionsOf(program, []).join("\n\n")}\n`;
}

function sectionsOf(command: Command, above: readonly string[]): string[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== "help");
  return below.flatMap((one) => {
    const names = [...above, one.name()];
    return [sectionText(one, names), ...sectionsOf(one, names)];
  });
}

function sectionText(command: Command, names: readonly string[]): string {
  const shown = command.registeredArguments.map(argumentText);
  const own = command.options.filter(({ long }) => !settingFlags.has(long ?? ""));
  const taken = command.options.filter(({ long }) => settingFlags.has(long ?? ""));
  const parts = [
    `${"#".repeat(names.length + 1)} ${names.join(" ")}`,
    sentence(command.description()),
  ];
  if (command.commands.length === 0) {
    const usage = ["penstock", ...names, "[options]", ...shown].join(" ");
    parts.push(`\`\`\`text\n${usage}\n\`\`\``);
  }
  if (own.length > 0) parts.push(`| Option | |\n|---|---|\n${own.map(optionRow).join("\n")}`);
  if (taken.length > 0) parts.push(settingsText(taken));
  return parts.join("\n\n");
}

function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function optionRow({ flags, description, argChoices }: Option): string {
  const choices = argChoices === undefined ? "" : ` (${argChoices.join(", ")})`;
  return `| \`${flags.replaceAll("|", "\\|")}\` | ${marked(description)}${choices} |`;
}

function settingsText(taken: readonly Option[]): string {
  if (taken.length === settingFlags.size) return "It takes every [setting](settings.md) as a flag.";
  const flags = taken.map(({ long }) => `\`${long}\``).join(", ");
  return `It takes these [settings](settings.md) as flags: ${flags}.`;
}
