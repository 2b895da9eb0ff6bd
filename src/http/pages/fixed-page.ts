// Pages that are made once and are the same for everybody, and what keeps a browser from taking an
// answer for more than it is: a page loads and runs nothing, and no answer is what its content type
// does not say.

import { createHash } from "node:crypto";
import type { FixedAnswer } from "./fixed-answer.ts";

export const nosniff = ["X-Content-Type-Options", "nosniff"] as const;

export interface PageParts {
  /** Stands in the page as it is here. */
  readonly style: string;
  /** For how long it may be kept. */
  readonly seconds: number;
}

export function fixedPage(html: string, { style, seconds }: PageParts): FixedAnswer {
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
      ["Cache-Control", `public, max-age=${seconds}`],
    ],
    body: html,
  };
}
