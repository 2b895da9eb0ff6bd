// What a command is given that works by the settings, and how it says things: results on standard
// output, remarks beside them on standard error.

import type { Config } from "../platform/settings/config.ts";
import type { CommandContext } from "./context.ts";
import { forTerminal } from "./terminal.ts";

export interface ConfiguredCommand {
  readonly config: Config;
  readonly context: CommandContext;
}

type Said = Pick<ConfiguredCommand, "context">;

export function say({ context }: Said, line: string): void {
  context.stdout.write(`${forTerminal(line)}\n`);
}

/** A remark beside the result, on standard error. */
export function note({ context }: Said, line: string): void {
  context.stderr.write(`${forTerminal(line)}\n`);
}
