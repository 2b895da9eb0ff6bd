// Tests that are too long for every `npm test`. Run by `npm run test:deploy`.

import path from "node:path";
import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: vitest takes its configuration from the default export
export default defineConfig({
  test: {
    root: path.resolve(import.meta.dirname, "../.."),
    include: ["test/deploy/**/*.slow.ts"],
    pool: "forks",
    testTimeout: 15 * 60_000,
    hookTimeout: 60_000,
  },
});
