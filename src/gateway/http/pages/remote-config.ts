// Reports the available features to SDKs at their start: capture and autocapture only. The answer
// does not depend on the key, so it does not reveal whether a key exists.

import { randomUUID } from "node:crypto";

/** The settings that SDKs get. `/e/` accepts these compressions. */
const config = {
  supportedCompression: ["gzip", "gzip-js", "lz64", "base64"],
  analytics: { endpoint: "/e/" },
  autocapture_opt_out: false,
  elementsChainAsString: true,
  defaultIdentifiedOnly: true,
  hasFeatureFlags: false,
  sessionRecording: false,
  heatmaps: false,
  surveys: false,
  productTours: false,
  conversations: false,
  captureDeadClicks: false,
  capturePerformance: false,
  autocaptureExceptions: false,
  errorTracking: { autocaptureExceptions: false, suppressionRules: [] },
  logs: { captureConsoleLogs: false },
  isAuthenticated: false,
  toolbarParams: {},
  siteApps: [],
};

const configTail = `${JSON.stringify(config).slice(1)}\n`;
/** The settings for SDKs from before 2023, which would not autocapture otherwise. */
const withOlderConfig = { config: { enable_collect_everything: true }, ...config };

/** Returns the configuration as JSON. `key` may be any text. */
export function configJson(key: string): string {
  return `{"token":${JSON.stringify(key)},${configTail}`;
}

/** Returns a script that sets the configuration. No `key` can end its string or script element. */
export function configScript(key: string): string {
  const quoted = JSON.stringify(key).replaceAll("<", "\\u003c");
  return `(function(){var all=window._POSTHOG_REMOTE_CONFIG=window._POSTHOG_REMOTE_CONFIG||{};all[${quoted}]={config:{"token":${quoted},${configTail.trimEnd()},siteApps:[]}})();\n`;
}

interface FlagsAsked {
  /** The version of the answer's form; 1 if the request names no version. */
  readonly version: number;
  readonly withConfig: boolean;
  /** Whether the request is for `/decide`, which SDKs used before `/flags`. */
  readonly isDecide: boolean;
}

/** Returns the answer to a request for flags. The answer has no flags. */
export function flagsJson({ version, withConfig, isDecide }: FlagsAsked, nowMs: number): string {
  const answer = {
    ...flagsIn(isDecide ? version : version < 2 ? 3 : 4),
    errorsWhileComputingFlags: false,
    ...(withConfig || isDecide ? withOlderConfig : {}),
    requestId: randomUUID(),
    evaluatedAt: nowMs,
  };
  return JSON.stringify(answer);
}

/** Returns the part of the answer that depends on the version of `/decide`. */
function flagsIn(version: number): object {
  if (version >= 4) return { flags: {} };
  if (version === 3) return { featureFlags: {}, featureFlagPayloads: {} };
  return { featureFlags: version === 2 ? {} : [] };
}
