// Preloaded into the processes that tests start (test/vitest.config.ts). Node takes the types off every
// TypeScript file each time it starts; here that is done once for each text, and kept in the cache.
// A gateway then begins with half the CPU. What is run is the same text that Node would run.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import module from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { strippedDir } from "./project.mjs";

function load(url, context, nextLoad) {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context);
  const text = readFileSync(fileURLToPath(url), "utf8");
  return { format: "module", source: stripped(text), shortCircuit: true };
}

function stripped(text) {
  const file = join(strippedDir, createHash("sha1").update(text).digest("hex"));
  try {
    return readFileSync(file, "utf8");
  } catch {
    const source = withoutWarning(() => module.stripTypeScriptTypes(text));
    keep(file, source);
    return source;
  }
}

/** Node calls this experimental, though it does it at each start, on the error output of tests. */
function withoutWarning(work) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Whole or not at all: others read it meanwhile. A folder that is not writable costs time only. */
function keep(file, source) {
  try {
    mkdirSync(strippedDir, { recursive: true });
    const unfinished = `${file}.${process.pid}`;
    writeFileSync(unfinished, source);
    renameSync(unfinished, file);
  } catch {
    // The next process takes the types off again.
  }
}

// Tests also start the host's own Node, which may be too old for this.
module.registerHooks?.({ load });
