// Pages with the HTML snippet load posthog-js from the gateway. Without it, such a page sends no
// events and shows no error.

import { checkOf, type Finding } from "./finding.ts";

interface Scripts {
  readonly version: string;
  readonly folder: string;
  readonly names: readonly string[];
}

/**
 * `read` returns the files that a gateway would serve, or throws. `setting` is `off` if none should
 * be served.
 */
export function checkScripts(
  read: () => Scripts | undefined,
  setting: string | undefined,
): Finding {
  const check = checkOf("scripts");
  const fix =
    "PENSTOCK_POSTHOG_JS=<folder of the npm package posthog-js>, or off if no page loads it from here";
  try {
    const scripts = read();
    if (scripts !== undefined)
      return check.ok(`posthog-js ${scripts.version} from ${scripts.folder}`);
    if (setting === "off") return check.ok("none: PENSTOCK_POSTHOG_JS is off");
    return check.warn(
      "no posthog-js: pages with the HTML snippet get a 404 for /static/array.js and send no events",
      fix,
    );
  } catch (error) {
    return check.fail(`posthog-js cannot be read: ${(error as Error).message}`, fix);
  }
}
