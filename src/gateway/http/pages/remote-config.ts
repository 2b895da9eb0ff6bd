// Reports to starting SDKs which features are available: capture and autocapture. The answer is the
// same for every key, so it does not reveal whether a key exists.

import { randomUUID } from "node:crypto";

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
/** SDKs from before 2023 use autocapture only if this member is present. */
const withOlderConfig = { config: { enable_collect_everything: true }, ...config };

export function configJson(key: string): string {
  return `{"token":${JSON.stringify(key)},${configTail}`;
}

/** The quoting ensures that no `key` can end the string or the script element. */
export function configScript(key: string): string {
  const quoted = JSON.stringify(key).replaceAll("<", "\\u003c");
  return `(function(){var all=window._POSTHOG_REMOTE_CONFIG=window._POSTHOG_REMOTE_CONFIG||{};all[${quoted}]={config:{"token":${quoted},${configTail.trimEnd()},siteApps:[]}})();\n`;
}

interface FlagsAsked {
  readonly version: number;
  readonly withConfig: boolean;
  readonly isDecide: boolean;
}

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

function flagsIn(version: number): object {
  if (version >= 4) return { flags: {} };
  if (version === 3) return { featureFlags: {}, featureFlagPayloads: {} };
  return { featureFlags: version === 2 ? {} : [] };
}
