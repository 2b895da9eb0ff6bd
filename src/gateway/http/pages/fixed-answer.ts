// Declares constant answers, and the security headers of the gateway's pages. A page's policy lets
// it load and run nothing except its own style. `nosniff` keeps a browser from guessing another
// content type. write-fixed.ts writes the answers.

import { createHash } from "node:crypto";

export interface FixedAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | Uint8Array;
  /**
   * The requests that hold the body in memory: this request alone, or all requests that read it.
   * Until they have ended the body counts as bytes in flight, once. Absent if the process always
   * holds the body.
   */
  readonly isHeldBy?: "its request" | "its readers";
}

export const JSON_TYPE = "application/json";
export const SCRIPT_TYPE = "text/javascript; charset=utf-8";

export const nosniff = ["X-Content-Type-Options", "nosniff"] as const;

interface PageParts {
  /** The text of the page's style element. The policy contains its hash. */
  readonly style: string;
  /** Number of seconds for which a cache may store the page. */
  readonly cachedSeconds: number;
}

export function fixedPage(html: string, { style, cachedSeconds }: PageParts): FixedAnswer {
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
