// docs/reference/settings.md, from the table of settings.

import { upDefaults } from "../../src/commands/settings.ts";
import { type SettingName, settings, variableOf } from "../../src/platform/settings/config.ts";
import { bytesText, generatedFrom, marked, sentence } from "./words.ts";

const introduction = `# Settings

${generatedFrom("src/platform/settings/config.ts")}

Settings are environment variables or flags of the same name: \`PENSTOCK_BODY_BYTES_MAX\` is \`--body-bytes-max\`. A flag takes precedence over a variable, and a variable over the default.

- All settings are checked at start, and every error is listed. An unknown \`PENSTOCK_*\` variable is an error, and the message suggests a setting with a similar name. \`PENSTOCK_TEST_*\` is reserved for the project's tests.
- Give secrets (\`PENSTOCK_NATS_TOKEN\`, a password in \`PENSTOCK_NATS_URL\`) as variables, because flags are visible in the list of processes.
- Limits per process apply to each worker.
- \`${variableOf("host")}\` is ${upDefaults.host} for \`up\`, because the key of its demo project is public.`;

export function settingsPage(): string {
  const rows = (Object.keys(settings) as SettingName[]).map((name) => {
    const { fallback, unit, why } = settings[name];
    const standard = fallback === undefined ? "unset" : `\`${fallback}\`${inWords(fallback, unit)}`;
    return `| \`${variableOf(name)}\` | ${standard} | ${marked(unit)} | ${sentence(why)} |`;
  });
  return `${introduction}

| Variable | Default | Unit | Purpose |
|---|---|---|---|
${rows.join("\n")}
`;
}

/** A number of bytes in a larger unit, in brackets. */
function inWords(text: string, unit: string): string {
  return unit.startsWith("bytes") ? ` (${bytesText(Number(text))})` : "";
}
