// Checks whether the upstream, to which what is no event is passed on, answers at all.

import { checkOf, type Finding } from "./finding.ts";

interface UpstreamOptions {
  /** Undefined: none is set. */
  readonly url: string | undefined;
  readonly timeoutMs: number;
}

/** Asks for a script, which needs no key. Nothing where no upstream is set. */
export async function checkUpstream({ url, timeoutMs }: UpstreamOptions): Promise<Finding[]> {
  if (url === undefined) return [];
  const check = checkOf("upstream");
  const fix = "PENSTOCK_UPSTREAM_URL=<address of PostHog>, or unset it to answer here";
  const away = "flags and configuration are answered from what is kept, or 503; events are stored";
  try {
    const response = await fetch(`${url}/static/array.js`, {
      ...{ method: "HEAD", redirect: "manual" },
      signal: AbortSignal.timeout(timeoutMs),
    });
    const { status } = response;
    if (status >= 500) return [check.warn(`${url} answers ${status}: ${away}`, fix)];
    const script = status === 200 ? "" : ` (${status} for /static/array.js)`;
    return [check.ok(`${url} answers${script}`)];
  } catch (error) {
    const { message, cause } = error as Error;
    const reason = cause instanceof Error ? cause.message || message : message;
    return [check.warn(`${url} does not answer (${reason}): ${away}`, fix)];
  }
}
