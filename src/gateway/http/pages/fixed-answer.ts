import { createHash } from "node:crypto";

export interface FixedAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | Uint8Array;
  /**
   * The requests that hold the body in memory, in which it counts as bytes in flight, once. Absent
   * if the process always holds it.
   */
  readonly isHeldBy?: "its request" | "its readers";
}

export const JSON_TYPE = "application/json";
export const SCRIPT_TYPE = "text/javascript; charset=utf-8";

export const nosniff = ["X-Content-Type-Options", "nosniff"] as const;

interface PageParts {
  /** The policy contains the hash of this style element. */
  readonly style: string;
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
