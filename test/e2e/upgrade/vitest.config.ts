// `npm run test:upgrade`: the upgrade from release 0.1.0, which is built from the history of this
// repository. It is not part of `npm test`, because a clone may lack the history.

import { defineConfig } from "vitest/config";
import allTests from "../../vitest.config.ts";

// biome-ignore lint/style/noDefaultExport: vitest takes its configuration from the default export
export default defineConfig({
  test: {
    ...allTests.test,
    include: ["test/e2e/upgrade/**/*.slow.ts"],
    // Each file starts up to nine processes.
    fileParallelism: false,
    hookTimeout: 10 * 60_000,
    testTimeout: 15 * 60_000,
  },
});
