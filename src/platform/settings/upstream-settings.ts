import { durationMs, originUrl, wholeNumber } from "./parsers.ts";
import { setting } from "./setting.ts";

export const upstreamSettings = {
  upstreamUrl: setting({
    parse: originUrl,
    fallback: undefined,
    unit: "url",
    why: "PostHog server that answers requests for flags, configuration, scripts, surveys and recordings; unset: the gateway answers them itself, with every feature off",
  }),
  upstreamTimeoutMs: setting({
    parse: wholeNumber(100, 120_000),
    fallback: "5000",
    unit: "ms",
    why: "timeout of a request to the upstream; then the gateway returns a cached response, or 503 upstream_unavailable",
  }),
  upstreamRequestsMax: setting({
    parse: wholeNumber(1, 10_000),
    fallback: "128",
    unit: "requests",
    why: "maximum concurrent requests to the upstream per process; more get a cached response, or 503 upstream_unavailable",
  }),
  upstreamKeptBytesMax: setting({
    parse: wholeNumber(0, 2 ** 32),
    fallback: "67108864",
    unit: "bytes",
    why: "maximum bytes of upstream responses that each process caches for outages of the upstream: half for flags, a quarter each for scripts and configuration; 0: no cache",
  }),
  upstreamKeptAge: setting({
    parse: durationMs,
    fallback: "1d",
    unit: "duration",
    why: "maximum age of a cached response that is returned while the upstream is unavailable",
  }),
} as const;
