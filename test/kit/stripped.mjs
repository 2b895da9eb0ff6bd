// A module that is loaded first in the processes that tests start. It caches TypeScript files
// without their types, because Node would otherwise strip the types at each start. With the cache,
// the start of a gateway needs half the CPU.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import module from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { strippedDir } from "../../scripts/lib/project.mjs";

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

function withoutWarning(work) {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Writes the file atomically, because other processes may read it. */
function keep(file, source) {
  try {
    mkdirSync(strippedDir, { recursive: true });
    const unfinished = `${file}.${process.pid}`;
    writeFileSync(unfinished, source);
    renameSync(unfinished, file);
  } catch {
    // The error is ignored. Without the file, the next process strips the types again.
  }
}

// The function is optional, because tests also start the host's own Node, which may be older.
module.registerHooks?.({ load });
