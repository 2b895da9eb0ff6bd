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

const introduction = `# Errors, and warnings

${generatedFrom("src/platform/base/errors.ts")}

All errors are \`application/problem+json\` (RFC 9457): \`{"type","title","status","code","detail"}\`. In [the newer protocol](newer-protocol.md) they are \`{"error","error_description"}\`. [What the HTTP library refuses itself](http.md#the-protocol) is answered with a short HTML page instead.

\`type\` is a link to what \`GET /docs/errors\` of the gateway says of the code, in the words of the same table.

- **A 4xx is final**: nothing of the request is stored, and it will not be. SDKs give up on it.
- **A 429** is only for a quota that an operator has set. \`Retry-After\` is 1 to 60 seconds, jittered.
- **A 503 is for trying again**: some of the request may be stored already. Transient trouble is always 503, because posthog-js gives up on any 4xx. For \`unavailable\`, \`timeout\` and \`store_full\`, \`Retry-After\` is as long as the stream of the project's events has stored nothing, and up to half as long again: 1 or 2 seconds at first, 60 at most. If the request ends before its project is known, the time counts since which no stream stores. \`overloaded\` has the same times while such an outage lasts. Otherwise it has 1 to 5 seconds, as the other codes have, and \`project_full\` has up to 60.`;

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
    `| Status | Code | What | Retry |\n|---|---|---|---|\n${overview.join("\n")}`,
    ...sections,
    `## Left out of a 200\n\nThese stand in \`warnings\`, with the index of the event. It is not stored, its neighbours are, and it counts as \`dropped\`.\n\n${notes(dropTable)}`,
    `## Stored, with a warning\n\nThese stand in \`warnings\` too, or in the newer protocol in the \`details\` of a \`warning\`. The event is stored and counts as \`accepted\`, but not all is as it was meant.\n\n${notes(warningTable)}`,
  ].join("\n\n")}\n`;
}

function errorText(code: ErrorCode): string {
  const { status, title, when, remedy } = errorTable[code];
  const isOfItem =
    (itemErrorCodes as readonly ErrorCode[]).includes(code) && !when.includes("newer protocol");
  const item = isOfItem
    ? "\n\nIn a batch it concerns one item, which stands in `errors`; its neighbours are stored."
    : "";
  return `### ${code}\n\n**${marked(title)}.** ${sentence(when)}\n\n${marked(remedy)}${item}\n\nRetry: ${retries[status]}.`;
}

function notes(table: Record<string, Pick<ErrorRow, "when" | "remedy">>): string {
  const rows = Object.entries(table).map(
    ([code, { when, remedy }]) => `### ${code}\n\n${sentence(when)}\n\n${marked(remedy)}`,
  );
  return rows.join("\n\n");
}
