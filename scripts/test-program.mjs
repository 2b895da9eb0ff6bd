// Prints the path of a program that tests run next to a gateway, and fetches it if necessary: as
// JSON on the last line of standard output, `{ "path": … }` or, for one that tests can do without,
// `{ "why": … }`.
//   node scripts/test-program.mjs NAME

import { SetupError } from "./lib/project.mjs";
import { runProgram } from "./lib/runner.mjs";
import { testProgram, testProgramNames } from "./lib/test-programs.mjs";

async function print(runner) {
  const name = process.argv[2];
  if (!testProgramNames.includes(name))
    throw new SetupError(`usage: node scripts/test-program.mjs ${testProgramNames.join("|")}`);
  process.stdout.write(`${JSON.stringify(await testProgram(name, runner))}\n`);
}

await runProgram(print, (message) => process.stderr.write(`${message}\n`));
