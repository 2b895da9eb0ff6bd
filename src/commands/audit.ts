// The audit log of an operator's changes: one JSON line on standard error for each change, even for
// a failed change.

import { hostname } from "node:os";
import { createLog } from "../platform/base/log.ts";
import type { ConfiguredCommand } from "./context.ts";
import { userOf } from "./erase/receipt.ts";

/** Returns the author of a change: `user@host`. */
export function authorOf({ context }: Pick<ConfiguredCommand, "context">): string {
  return `${userOf(context.host)}@${hostname()}`;
}

export async function audited<T>(
  command: ConfiguredCommand,
  { change, ...what }: { readonly change: string; readonly [field: string]: unknown },
  work: () => Promise<T>,
): Promise<T> {
  const log = createLog("info", command.context.stderr);
  const entry = { change, actor: authorOf(command), ...what };
  try {
    const result = await work();
    log.info({ ...entry, result: "done" }, `audit: ${change}`);
    return result;
  } catch (error) {
    const reason = (error as Error).message;
    log.warn({ ...entry, result: "failed", reason }, `audit: ${change}`);
    throw error;
  }
}
