// Converts the plain text of the tables into Markdown with links and code.

import { sentence as plainSentence } from "../../src/gateway/http/pages/pages.ts";

export function generatedFrom(source: string): string {
  return `<!-- Generated from ${source} by \`npm run docs\`: change it there. -->`;
}

const links: readonly (readonly [RegExp, string])[] = [
  [/the newer protocol/g, "newer-protocol.md"],
  [/a page of its own/g, "http.md#the-protocol"],
  [
    /(?:the project's quota|the quota that was set for it)/g,
    "../guides/projects-and-quotas.md#quotas",
  ],
  [/its share of a stream/g, "../guides/projects-and-quotas.md#a-projects-share-of-a-stream"],
  [/cannot guarantee that acknowledged events stay stored/g, "../guides/operations.md#readiness"],
  [/deploy\/nats\/README\.md/g, "../../deploy/nats/README.md"],
];

const code =
  /`[^`]+`|\b(?:timestamp|offset|uuid)(?= (?:is|cannot|as)\b)|\{".*?\}(?=[.,]| or )|PENSTOCK_\w+|\$\w+|properties\.[$\w]+(?:=\w+)?|penstock project \w+|\/(?:readyz|capture\/|batch\/|static\/)|\b(?:api_key|distinct_id|session_id|window_id|sent_at|Content-(?:Length|Encoding)|Transfer-Encoding|Retry-After|X-Forwarded-For|max_payload)\b/g;

export function marked(text: string): string {
  let shown = text.replaceAll("<", "&lt;").replaceAll("|", "\\|");
  shown = shown.replaceAll(code, (name) => (name.startsWith("`") ? name : `\`${name}\``));
  for (const [words, place] of links)
    shown = shown.replaceAll(words, (said) => `[${said}](${place})`);
  return shown;
}

export function sentence(clause: string): string {
  return marked(plainSentence(clause));
}

export function bytesText(bytes: number): string {
  const units = [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ] as const;
  const [size, name] = units.find(([unit]) => bytes % unit === 0) ?? [1, "bytes"];
  return `${bytes / size} ${name}`;
}
