// Prints the path of a program that tests run next to a gateway, and fetches it if necessary: as
// JSON on the last line of standard output, `{ "path": … }` or, for one that tests can do without,
// `{ "why": … }`.
//   node scripts/test-program.mjs NAME

import { constants } from "node:os";
import { noteGroups } from "./lib/lock.mjs";
import { SetupError } from "./lib/project.mjs";
import { createRunner } from "./lib/runner.mjs";
import { testProgram, testProgramNames } from "./lib/test-programs.mjs";

const runner = createRunner({ noteGroups });
const name = process.argv[2];
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.on(signal, () => runner.interrupt(signal));
try {
  if (!testProgramNames.includes(name))
    throw new SetupError(`usage: node scripts/test-program.mjs ${testProgramNames.join("|")}`);
  process.stdout.write(`${JSON.stringify(await testProgram(name, runner))}\n`);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
const signal = runner.interruptedBy();
if (signal !== undefined) process.exitCode = 128 + constants.signals[signal];
