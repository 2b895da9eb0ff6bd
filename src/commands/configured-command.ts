import type { Config } from "../platform/settings/config.ts";
import type { CommandContext } from "./context.ts";
import { forTerminal } from "./terminal.ts";

export interface ConfiguredCommand {
  readonly config: Config;
  readonly context: CommandContext;
}

type WithContext = Pick<ConfiguredCommand, "context">;

export function say({ context }: WithContext, line: string): void {
  context.stdout.write(`${forTerminal(line)}\n`);
}

export function note({ context }: WithContext, line: string): void {
  context.stderr.write(`${forTerminal(line)}\n`);
}
