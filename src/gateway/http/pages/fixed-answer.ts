// Declares answers that are settled before they are written, and the security headers of ours:
// the policy of a page lets it load and run nothing but its own style, and `nosniff` keeps a
// browser from guessing another content type. Writes nothing: see write-fixed.ts.

import { createHash } from "node:crypto";

export interface FixedAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | Uint8Array;
  /**
   * The body goes when all who read it are done, be it this request alone or several: until then it
   * counts as bytes in flight, once. Absent: the process has it anyway.
   */
  readonly isHeldBy?: "its request" | "its readers";
}

export const JSON_TYPE = "application/json";
export const SCRIPT_TYPE = "text/javascript; charset=utf-8";

export const nosniff = ["X-Content-Type-Options", "nosniff"] as const;

interface PageParts {
  /** The text of the page's style element, which the policy names by its hash. */
  readonly style: string;
  /** How long a cache may keep the page. */
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
