import { Readable } from "node:stream";
import { commandLine } from "../../src/app/command-line.ts";
import { commandWorld } from "./command-context.ts";

export interface CommandRun {
  readonly out: string;
  readonly err: string;
  readonly audit: readonly Record<string, unknown>[];
  readonly fault: string | undefined;
}

/** Runs a command. `typed` is entered on a terminal. By default, there is no terminal. */
export async function runCommand(
  env: Readonly<Record<string, string>>,
  args: readonly string[],
  typed?: string,
): Promise<CommandRun> {
  const stdin = Object.assign(Readable.from([`${typed}\n`]), { isTTY: typed !== undefined });
  const { context, said } = commandWorld(env, stdin);
  let fault: string | undefined;
  try {
    await commandLine(context).parseAsync(args, { from: "user" });
  } catch (error) {
    fault = (error as Error).message;
  }
  const entry = /\{"level":.*\n/g;
  const audit = (said.err.match(entry) ?? []).map(
    (line) => JSON.parse(line) as Record<string, unknown>,
  );
  return { out: said.out, err: said.err.replaceAll(entry, ""), audit, fault };
}
