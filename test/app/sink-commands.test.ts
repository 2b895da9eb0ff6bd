import { Command, CommanderError } from "commander";
import { expect, test } from "vitest";
import { addSinks } from "../../src/app/sink-commands.ts";
import { CommandError } from "../../src/commands/context.ts";
import { commandWorld } from "../kit/command-context.ts";

async function saidTo(line: string): Promise<unknown> {
  const program = new Command().exitOverride();
  addSinks(program, commandWorld().context);
  return await program.parseAsync(["sink", ...line.split(" ")], { from: "user" }).then(
    () => undefined,
    (error: unknown) => error,
  );
}

test.each([
  ["parquet s3://key:secret@bucket/warehouse", "s3://… is a URL, not a local folder"],
  ["parquet", "no target: use penstock sink parquet <folder>"],
  ["postgres --to mysql://user:secret@db/warehouse", "cannot read the database's URL"],
  ["postgres --to localhost/warehouse", "cannot read the database's URL"],
  ["clickhouse 127.0.0.1:8129", "cannot read ClickHouse's URL"],
  ["posthog http://127.0.0.1:8000", "is the gateway on this host (PENSTOCK_PORT is 8000)"],
  ["posthog http://localhost:8000/", "is the gateway on this host"],
  ["posthog http://[::1]:8000", "is the gateway on this host"],
  ["posthog ftp://me:secret@example.com", "as https://us"],
])("penstock sink %s is rejected with the reason", async (line, text) => {
  const said = await saidTo(line);
  expect(said).not.toBeInstanceOf(CommanderError);
  expect(said).toBeInstanceOf(CommandError);
  expect(said).toMatchObject({ message: expect.stringContaining(text), exitCode: 2 });
  expect((said as Error).message).not.toContain("secret");
});

// No folder can be created in /proc, so the parent folder is missing.
test.each(["/proc/warehouse", "/proc/a/b", "/dev/null/warehouse"])(
  "penstock sink parquet %s fails immediately, because the folder can never be created",
  async (folder) => {
    expect(await saidTo(`parquet ${folder}`)).toMatchObject({
      message: expect.stringMatching(
        /cannot be created or written to: E[A-Z]+: .*name another folder/,
      ),
      exitCode: 1,
    });
  },
);
