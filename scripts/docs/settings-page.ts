// docs/reference/settings.md, from the table of settings.

import { upDefaults } from "../../src/commands/settings.ts";
import { type SettingName, settings, variableOf } from "../../src/platform/settings/config.ts";
import { bytesText, generatedFrom, marked, sentence } from "./words.ts";

const introduction = `# Settings

${generatedFrom("src/platform/settings/config.ts")}

Environment variables, or flags of the same name: \`PENSTOCK_BODY_BYTES_MAX\` is \`--body-bytes-max\`. A flag counts before a variable, and a variable before the default.

- They are checked together at start, and every fault is listed. An unknown \`PENSTOCK_*\` variable is a fault, and the setting whose name comes near is named (\`PENSTOCK_TEST_*\` are those of the project's own tests).
- Give secrets (\`PENSTOCK_NATS_TOKEN\`, a password in \`PENSTOCK_NATS_URL\`) as variables: a flag can be read in the list of processes.
- Limits per process hold for each worker.
- \`${variableOf("host")}\` is ${upDefaults.host} for \`up\`, because everybody knows the key of its project.`;

export function settingsPage(): string {
  const rows = (Object.keys(settings) as SettingName[]).map((name) => {
    const { fallback, unit, why } = settings[name];
    const standard = fallback === undefined ? "unset" : `\`${fallback}\`${inWords(fallback, unit)}`;
    return `| \`${variableOf(name)}\` | ${standard} | ${marked(unit)} | ${sentence(why)} |`;
  });
  return `${introduction}

| Variable | Default | Unit | What for |
|---|---|---|---|
${rows.join("\n")}
`;
}

/** What a number of bytes comes to. */
function inWords(text: string, unit: string): string {
  return unit.startsWith("bytes") ? ` (${bytesText(Number(text))})` : "";
}
