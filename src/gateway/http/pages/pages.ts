// The pages of the public port: the front page, and the page of errors, to which the `type` of a
// problem links. The pages contain no information about this installation.

import { createHash } from "node:crypto";
import { type ErrorCode, type ErrorRow, errorTable } from "../../../platform/base/errors.ts";
import { dropTable, warningTable } from "../../../platform/base/warnings.ts";
import { type FixedAnswer, nosniff } from "../reply.ts";

function fixedPage(html: string, style: string, cachedSeconds: number): FixedAnswer {
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    status: 200,
    headers: [
      ["Content-Type", "text/html; charset=utf-8"],
      ["Content-Security-Policy", policy.join("; ")],
      nosniff,
      ["Referrer-Policy", "no-referrer"],
      ["Cache-Control", `public, max-age=${cachedSeconds}`],
    ],
    body: html,
  };
}

const errorsStyle = `
:root {
  color-scheme: light dark; --line: light-dark(#d5dae1, #313a46);
  --soft: light-dark(#5b6676, #9aa7b8); --accent: light-dark(#0b66c3, #6cb2ff);
}
body { max-width: 46rem; margin: 0 auto; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; }
h2 { margin: 2.5rem 0 0; padding-top: 1rem; border-top: 1px solid var(--line); font-size: 1.2rem; }
h3 { margin: 1.75rem 0 0.25rem; font-size: 1rem; overflow-wrap: anywhere; scroll-margin-top: 1rem; }
h3:target { outline: 2px solid var(--accent); outline-offset: 6px; border-radius: 2px; }
p, ul { margin: 0.35rem 0; }
code { font: 0.92em ui-monospace, monospace; overflow-wrap: anywhere; }
pre {
  margin: 0.5rem 0; padding: 0.75rem; overflow-x: auto;
  border: 1px solid var(--line); border-radius: 6px;
}
nav ul { display: flex; flex-wrap: wrap; gap: 0.15rem 0.9rem; padding: 0; list-style: none; }
a { color: var(--accent); }
.soft { color: var(--soft); }
`;

const statusWords: Record<ErrorRow["status"], string> = {
  400: "the request cannot be read, or is not an event",
  401: "the project of the request is unknown or disabled",
  404: "unknown path",
  405: "the path accepts other methods",
  413: "the request is too large",
  415: "unknown encoding",
  429: "the project is over its quota",
  503: "temporarily unavailable",
};

export const errorsPage = fixedPage(errorsText(), errorsStyle, 3_600);

function errorsText(): string {
  const codes = Object.keys(errorTable) as ErrorCode[];
  const statuses = [...new Set(codes.map((code) => errorTable[code].status))];
  const sections = statuses.map((status) => {
    const own = codes.filter((code) => errorTable[code].status === status).map(errorText);
    return `<h2>${status}: ${escaped(statusWords[status])}</h2>\n${own.join("\n")}`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Penstock: errors</title>
<style>${errorsStyle}</style>
</head>
<body>
<h1>Errors and warnings of Penstock</h1>
<p>An error is <code>application/problem+json</code>. Its <code>code</code> is one of the codes below, its <code>type</code> links to the
description of that code, and its <code>detail</code> describes the problem of this request.</p>
<nav aria-label="Codes"><ul>
${[...codes, ...Object.keys(dropTable), ...Object.keys(warningTable)].map((code) => `<li><a href="#${code}"><code>${code}</code></a></li>`).join("\n")}
</ul></nav>
${sections.join("\n")}
<h2>Dropped, with a 200</h2>
<p><code>warnings</code> lists these codes with the index of the event. The event is not stored; the other events of the request are.</p>
${notesText(dropTable)}
<h2>Stored, with a warning</h2>
<p><code>warnings</code> lists these codes too; in the newer protocol they are in the <code>details</code> of a <code>warning</code>. The event
is stored, but something was missing or changed.</p>
${notesText(warningTable)}
</body>
</html>
`;
}

function errorText(code: ErrorCode): string {
  const { status, title, when, remedy } = errorTable[code];
  const meaning = sentence(when);
  const more = meaning === `${title}.` ? "" : ` ${proseHtml(meaning)}`;
  return `${noteText(code, `<strong>${escaped(title)}.</strong>${more}`, remedy)}
<p class="soft">Retry: ${retryWords(status)}.</p>`;
}

function notesText(table: Readonly<Record<string, Pick<ErrorRow, "when" | "remedy">>>): string {
  return Object.entries(table)
    .map(([code, { when, remedy }]) => noteText(code, proseHtml(sentence(when)), remedy))
    .join("\n");
}

function noteText(code: string, meaning: string, remedy: string): string {
  return `<h3 id="${code}"><code>${code}</code></h3>\n<p>${meaning}</p>\n<p>${proseHtml(remedy)}</p>`;
}

export function retryWords(status: ErrorRow["status"]): string {
  if (status === 413) return "in smaller parts";
  return status === 429 || status === 503 ? "after Retry-After" : "no";
}

function isNameFirst(words: string): boolean {
  return /^(?:\$|[a-z]+_[a-z]|(?:properties|timestamp|offset|uuid|trace)\b)/.test(words);
}

export function sentence(words: string): string {
  const first = isNameFirst(words) ? words : `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
  return `${first}${words.endsWith(".") ? "" : "."}`;
}

/** Returns the HTML of a text. Text in backticks becomes code. */
function proseHtml(text: string): string {
  return escaped(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

const frontStyle =
  "body{font:1rem/1.5 system-ui,sans-serif;max-width:38rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}code{overflow-wrap:anywhere}";

const frontHtml = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Penstock</title>
<style>${frontStyle}</style>
<h1>Penstock</h1>
<p>This is an event-intake gateway. It takes product-analytics events in the PostHog capture format and answers 200 when they are stored.
This port only receives events.</p>
<ul>
<li>To send some, give a PostHog SDK this address as its host (<code>api_host</code>, <code>host</code>), or send them yourself with
<code>POST /capture/</code> or <code>POST /batch/</code>.</li>
<li>The documents are <code>README.md</code>, <code>docs/</code> and <code>docs/openapi.yaml</code>, in the folder Penstock runs from.
What an error means is at <a href="/docs/errors">/docs/errors</a>.</li>
<li>For operators, the live page, metrics and health are on the admin port.</li>
</ul>
`;

export const frontPage = fixedPage(frontHtml, frontStyle, 300);

export const robots: FixedAnswer = {
  status: 200,
  headers: [
    ["Content-Type", "text/plain; charset=utf-8"],
    nosniff,
    ["Cache-Control", "public, max-age=86400"],
  ],
  body: "User-agent: *\nDisallow: /\n",
};

export const favicon: FixedAnswer = {
  status: 204,
  headers: [["Cache-Control", "public, max-age=86400"]],
  body: "",
};
