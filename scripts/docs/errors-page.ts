// docs/reference/errors.md, from the tables of errors, drops and warnings.

import {
  type ErrorCode,
  type ErrorRow,
  errorTable,
  itemErrorCodes,
} from "../../src/platform/base/errors.ts";
import { dropTable, warningTable } from "../../src/platform/base/warnings.ts";
import { generatedFrom, marked, sentence } from "./words.ts";

const retries: Record<ErrorRow["status"], string> = {
  400: "no",
  401: "no",
  404: "no",
  405: "no",
  413: "in smaller parts",
  415: "no",
  429: "after `Retry-After`",
  503: "after `Retry-After`",
};

const introduction = `# Errors and warnings

${generatedFrom("src/platform/base/errors.ts")}

All errors are \`application/problem+json\` (RFC 9457): \`{"type","title","status","code","detail"}\`. In [the newer protocol](newer-protocol.md) they are \`{"error","error_description"}\`. [Errors that the HTTP library detects](http.md#the-protocol) get a short HTML page instead.

\`type\` links to the description of the code at \`GET /docs/errors\` of the gateway.

- **A 4xx is final**: nothing of the request is stored, and a retry does not help. SDKs give up.
- **A 429** means that the project is over a quota that an operator has set. \`Retry-After\` is 1 to 60 seconds, with jitter.
- **A 503 is temporary**: retry the request. Some of it may be stored already. Temporary errors are always 503, because posthog-js gives up on any 4xx.

\`Retry-After\` of a 503:

| Code | \`Retry-After\` |
|---|---|
| \`unavailable\`, \`timeout\`, \`store_full\` | 1 to 1.5 times the period in which the stream has stored nothing; 1 or 2 seconds at first, 60 at most. If the project of the request is not known, the period in which no stream has stored anything |
| \`overloaded\` | the same during such an outage, else 1 to 5 seconds |
| \`project_full\` | up to 60 seconds |
| other codes | 1 to 5 seconds |`;

export function errorsPage(): string {
  const codes = Object.keys(errorTable) as ErrorCode[];
  const statuses = [...new Set(codes.map((code) => errorTable[code].status))];
  const overview = codes.map((code) => {
    const { status, title } = errorTable[code];
    return `| ${status} | [\`${code}\`](#${code}) | ${marked(title)} | ${retries[status]} |`;
  });
  const sections = statuses.map((status) => {
    const own = codes.filter((code) => errorTable[code].status === status);
    return `## ${status}\n\n${own.map(errorText).join("\n\n")}`;
  });
  return `${[
    introduction,
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
  return `### ${code}\n\n**${marked(title)}.** ${sentence(when)}\n\n${marked(remedy)}${item}\n\nRetry: ${retries[status]}.`;
}

function notes(table: Record<string, Pick<ErrorRow, "when" | "remedy">>): string {
  const rows = Object.entries(table).map(
    ([code, { when, remedy }]) => `### ${code}\n\n${sentence(when)}\n\n${marked(remedy)}`,
  );
  return rows.join("\n\n");
}
