// Tells SDKs when they start which server-side features there are. There is only one, capture: so
// there are no flags, recording, surveys and the like are off, and autocapture is on. The answer is
// the same for every key, and no secret: it does not tell whether a key is known.

import { randomUUID } from "node:crypto";

/**
 * SDKs choose by this what they send. The compressions are those that `/e/` takes, by the names
 * that SDKs have for them.
 */
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
/** SDKs from before 2023 read `enable_collect_everything`, and autocapture nothing without it. */
const withOlderConfig = { config: { enable_collect_everything: true }, ...config };

/** `key` may be any text: it is escaped as a JSON string. */
export function configJson(key: string): string {
  return `{"token":${JSON.stringify(key)},${configTail}`;
}

/**
 * Makes the configuration a script, for pages. `key` is any text: it cannot end the string it
 * stands in, nor the element that the script may stand in.
 */
export function configScript(key: string): string {
  const quoted = JSON.stringify(key).replaceAll("<", "\\u003c");
  return `(function(){var all=window._POSTHOG_REMOTE_CONFIG=window._POSTHOG_REMOTE_CONFIG||{};all[${quoted}]={config:{"token":${quoted},${configTail.trimEnd()},siteApps:[]}})();\n`;
}

interface FlagsAsked {
  /** Chooses the form of the answer; 1 where the request names none. */
  readonly version: number;
  readonly withConfig: boolean;
  /** The request came at `/decide`, which SDKs used before `/flags`. */
  readonly isDecide: boolean;
}

/** Says that there is no flag, in the form that was asked for. */
export function flagsJson({ version, withConfig, isDecide }: FlagsAsked, nowMs: number): string {
  const answer = {
    ...flagsIn(isDecide ? version : version < 2 ? 3 : 4),
    errorsWhileComputingFlags: false,
    ...(withConfig || isDecide ? withOlderConfig : {}),
    requestId: randomUUID(),
    evaluatedAt: nowMs,
  };
  return `${JSON.stringify(answer)}\n`;
}

/**
 * `version` counts as `/decide` does: version 1 of `/flags` is version 3 of `/decide`, and later
 * ones of `/flags` are version 4.
 */
function flagsIn(version: number): object {
  if (version >= 4) return { flags: {} };
  if (version === 3) return { featureFlags: {}, featureFlagPayloads: {} };
  return { featureFlags: version === 2 ? {} : [] };
}
