import { checkOf, type Finding } from "./finding.ts";

interface UpstreamOptions {
  readonly url: string | undefined;
  readonly timeoutMs: number;
}

/**
 * Requests a script from the upstream, which needs no key. Returns no finding if no upstream is
 * set.
 */
export async function checkUpstream({ url, timeoutMs }: UpstreamOptions): Promise<Finding[]> {
  if (url === undefined) return [];
  const check = checkOf("upstream");
  const fix = "set PENSTOCK_UPSTREAM_URL to the URL of PostHog, or unset it";
  const away =
    "flags and configuration are served from the cache, or rejected with 503; events are stored";
  try {
    const response = await fetch(`${url}/static/array.js`, {
      ...{ method: "HEAD", redirect: "manual" },
      signal: AbortSignal.timeout(timeoutMs),
    });
    const { status } = response;
    if (status >= 500) return [check.warn(`${url} responds with ${status}: ${away}`, fix)];
    const script = status === 200 ? "" : ` (${status} for /static/array.js)`;
    return [check.ok(`${url} responds${script}`)];
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? cause.message || message : message;
    return [check.warn(`${url} does not respond (${reason}): ${away}`, fix)];
  }
}
