import { createInterface } from "node:readline/promises";
import { CommandError, type ConfiguredCommand, usageExitCode } from "./context.ts";

interface Confirmation {
  readonly command: string;
  readonly question: string;
  readonly word: string;
}

/** Asks on the terminal. Throws a CommandError unless the operator types the word. */
export async function confirm(
  { context }: ConfiguredCommand,
  { command, question, word }: Confirmation,
): Promise<void> {
  const { stdin, stderr } = context;
  if ((stdin as { readonly isTTY?: boolean }).isTTY !== true)
    throw new CommandError(
      `${command}: cannot ask for confirmation without a terminal. Confirm with --yes`,
      usageExitCode,
    );
  const asked = createInterface({ input: stdin, output: stderr });
  const prompt = `${question} This cannot be undone. Type ${word} to confirm: `;
  const answer = await asked.question(prompt).finally(() => asked.close());
  if (answer.trim() !== word) throw new CommandError(`${command}: nothing was changed`);
}
