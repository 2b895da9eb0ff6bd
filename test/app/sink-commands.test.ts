// Slips in where a sink is to write, told before anything is begun.

import { Command, CommanderError } from "commander";
import { expect, test } from "vitest";
import { addSinks } from "../../src/app/sink-commands.ts";
import { CommandError } from "../../src/cli/context.ts";
import { commandWorld } from "../../testkit/command-context.ts";

test.each([
  ["parquet s3://key:secret@bucket/warehouse", "s3://… is no folder of this host"],
  ["parquet", "say where to write: penstock sink parquet <folder>"],
  ["postgres --to mysql://user:secret@db/warehouse", "read the database's URL"],
  ["postgres --to localhost/warehouse", "read the database's URL"],
  ["clickhouse 127.0.0.1:8129", "read ClickHouse's URL"],
])("sink %s", async (line, text) => {
  const program = new Command().exitOverride();
  addSinks(program, commandWorld().context);
  const said = await program.parseAsync(["sink", ...line.split(" ")], { from: "user" }).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(said).not.toBeInstanceOf(CommanderError);
  expect(said).toBeInstanceOf(CommandError);
  expect(said).toMatchObject({ message: expect.stringContaining(text), exitCode: 2 });
  expect((said as Error).message).not.toContain("secret");
});
