// The audit log of an operator's changes. It writes one JSON line to standard error for each
// change, even if the change fails.

import { hostname } from "node:os";
import { createLog } from "../platform/base/log.ts";
import type { ConfiguredCommand } from "./context.ts";
import { userOf } from "./erase/receipt.ts";

/** Returns the author of a change: `user@host`. */
export function authorOf({ context }: Pick<ConfiguredCommand, "context">): string {
  return `${userOf(context.host)}@${hostname()}`;
}

/** Runs a change and logs it. `what` must not contain a key or another secret. */
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
    const { message, name } = error as Error;
    const reason = message === "" ? name : message;
    log.warn({ ...entry, result: "failed", reason }, `audit: ${change}`);
    throw error;
  }
}
