// Finds the Chromium that tests drive: the one in PENSTOCK_TEST_CHROMIUM, else one on PATH. None is
// fetched.

import { findOnPath } from "./prerequisites.mjs";

const names = ["chromium", "chromium-browser", "google-chrome"];

/** Its path, or undefined. */
export function findChromium() {
  const named = process.env.PENSTOCK_TEST_CHROMIUM ?? "";
  if (named !== "") return named;
  return names.map(findOnPath).find((program) => program !== undefined);
}
