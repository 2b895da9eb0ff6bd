// The pages of docs/reference/ that are generated from tables in the code. A test compares them with
// the committed files. Must not write files.

import { commandsPage } from "./commands-page.ts";
import { errorsPage } from "./errors-page.ts";
import { eventPage } from "./event-page.ts";
import { metricsPage } from "./metrics-page.ts";
import { settingsPage } from "./settings-page.ts";

/** The text of each page, by its path in the project. */
export function generatedPages(): Map<string, string> {
  return new Map([
    ["docs/reference/errors.md", errorsPage()],
    ["docs/reference/event-fields.md", eventPage()],
    ["docs/reference/settings.md", settingsPage()],
    ["docs/reference/metrics.md", metricsPage()],
    ["docs/reference/commands.md", commandsPage()],
  ]);
}
