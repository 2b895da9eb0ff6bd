// The tests that need a browser, which `npm test` excludes: `npm run test:browser`.

import path from "node:path";
import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest takes its configuration from the default export
export default defineConfig({
  test: {
    root: path.resolve(import.meta.dirname, "../../.."),
    include: ["test/e2e/browser/**/*.browser.ts"],
    pool: "forks",
    maxWorkers: 1,
    expect: { poll: { timeout: 30_000 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
