import { createInterface } from "node:readline/promises";
import { CommandError, type ConfiguredCommand, usageExitCode } from "./context.ts";

interface Confirmation {
  readonly command: string;
  readonly question: string;
  readonly word: string;
  /** How to undo the change. Default: it cannot be undone. */
  readonly undo?: string;
}

/** Asks the operator for confirmation. Throws a CommandError unless the operator types the word. */
export async function confirm(
  { context }: ConfiguredCommand,
  { command, question, word, undo = "This cannot be undone." }: Confirmation,
): Promise<void> {
  const { stdin, stderr, stop } = context;
  if ((stdin as { readonly isTTY?: boolean }).isTTY !== true)
    throw new CommandError(
      `${command}: cannot ask for confirmation without a terminal: ${question} Confirm with --yes`,
      usageExitCode,
    );
  const asked = createInterface({ input: stdin, output: stderr });
  const given = new AbortController();
  // Without a listener, Ctrl-C and the end of the input would leave the question open.
  for (const end of ["SIGINT", "close"] as const) asked.once(end, () => given.abort());
  const prompt = `${question} ${undo} Type ${word} to confirm: `;
  const signal = AbortSignal.any([stop, given.signal]);
  const answer = await asked
    .question(prompt, { signal })
    .catch(() => {
      stderr.write("\n");
      return "";
    })
    .finally(() => asked.close());
  if (answer.trim() !== word)
    throw new CommandError(`${command}: not confirmed: nothing was changed`);
}
