// The part of the table of settings that is of the upstream: where what is no event is passed on
// to, as requests for flags and configuration. Without an upstream the gateway answers them itself.

import { durationMs, originUrl, wholeNumber } from "./parsers.ts";
import { setting } from "./setting.ts";

export const upstreamSettings = {
  upstreamUrl: setting({
    parse: originUrl,
    fallback: undefined,
    unit: "url",
    why: "a PostHog, which answers what is no event: flags, configuration, scripts, surveys, recordings; unset: those are answered here, with nothing on",
  }),
  upstreamTimeoutMs: setting({
    parse: wholeNumber(100, 120_000),
    fallback: "5000",
    unit: "ms",
    why: "how long the upstream has for an answer; past it a kept one is given, or 503 upstream_unavailable",
  }),
  upstreamRequestsMax: setting({
    parse: wholeNumber(1, 10_000),
    fallback: "128",
    unit: "requests",
    why: "requests on their way to the upstream at once, of each process; past it as if the upstream were away",
  }),
  upstreamKeptBytesMax: setting({
    parse: wholeNumber(0, 2 ** 32),
    fallback: "67108864",
    unit: "bytes",
    why: "answers of the upstream that each process keeps for when it is away: half for flags, a quarter each for scripts and configuration; 0: none",
  }),
  upstreamKeptAge: setting({
    parse: durationMs,
    fallback: "1d",
    unit: "duration",
    why: "how old a kept answer may be that is given while the upstream is away",
  }),
} as const;
