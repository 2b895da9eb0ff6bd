// Tells SDKs when they start which server-side features there are. There is one, capture:
// so there are no flags, recording, surveys and the like are off, and autocapture is on. The answer
// is the same for every key, and no secret: a config is no proof that a key is known.

import { randomUUID } from "node:crypto";

/** SDKs choose by this what they send: `/e/` takes these compressions, in their names. */
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
/** SDKs of before 2023 read this, and autocapture nothing without it. */
const withOlderConfig = { config: { enable_collect_everything: true }, ...config };

/** `key` goes into JSON, so it may be any text. */
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

export interface FlagsAsked {
  /** Names the answer's form: 1 where none is named. */
  readonly version: number;
  readonly withConfig: boolean;
  /** `/decide`, which came before `/flags`. */
  readonly isDecide: boolean;
}

/** Tells that there is no flag, in the form that was asked for. */
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
 * `version` counts as `/decide` does: the first of `/flags` is its third, the second and later ones
 * are its fourth.
 */
function flagsIn(version: number): object {
  if (version >= 4) return { flags: {} };
  if (version === 3) return { featureFlags: {}, featureFlagPayloads: {} };
  return { featureFlags: version === 2 ? {} : [] };
}
