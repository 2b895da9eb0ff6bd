import { Command, CommanderError } from "commander";
import { expect, test, vi } from "vitest";
import { commandLine } from "../../src/app/command-line.ts";
import { addSinks } from "../../src/app/sink-commands.ts";
import { CommandError } from "../../src/commands/context.ts";
import { commandWorld } from "../kit/command-context.ts";
import { temporaryFolder } from "../kit/processes.ts";

async function saidTo(line: string): Promise<unknown> {
  const program = new Command().exitOverride();
  addSinks(program, commandWorld().context);
  return await program.parseAsync(["sink", ...line.split(" ")], { from: "user" }).then(
    () => undefined,
    (error: unknown) => error,
  );
}

interface Rejection {
  readonly error: CommandError | CommanderError;
  readonly printed: string;
}

async function rejectionOf(args: readonly string[]): Promise<Rejection> {
  const { context, said } = commandWorld();
  const stderr = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const error: unknown = await commandLine(context)
    .parseAsync(["sink", ...args], { from: "user" })
    .catch((thrown: unknown) => thrown);
  const printed = said.all + stderr.mock.calls.flat().join();
  stderr.mockRestore();
  if (error instanceof CommandError || error instanceof CommanderError) return { error, printed };
  throw new Error("run the sink: it did not reject its arguments", { cause: error });
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

test.each([
  [["postgres"], /no target: use/],
  [["postgres", "mysql://me:hunter2@db/x"], /must have the form postgres:/],
  [["postgres", "postgres://db/x", "--to", "postgres://me:hunter2@db/y"], /give the target once/],
  [["postgres", "--to", "postgres://db/x", "--projects", "a,,b"], /invalid project id ""/],
  [["postgres", "--to", "postgres://db/x", "--lanes", "dead"], /invalid lane "dead"/],
  [["postgres", "--to", "postgres://db/x", "--schema", 'x"; DROP'], /must match/],
  [["clickhouse"], /no target: use/],
  [["clickhouse", "clickhouse://me:hunter2@db/x"], /must have the form https:/],
  [["clickhouse", "https://me:hunter2@db?password=hunter2"], /unknown parameter password/],
  [["clickhouse", "https://me:hunter%2@db"], /not followed by two digits/],
  [["clickhouse", "https://me:hunter2@db?sslrootcert=/nowhere"], /read sslrootcert/],
  [["clickhouse", "https://db", "--database", 'x"; DROP'], /must match/],
  [["posthog"], /no target: use/],
  [["posthog", "https://me:hunter2@example.com"], /without user/],
  [["posthog", "https://example.com", "--key", "shop"], /must be <project id>=/],
])("penstock sink rejects the arguments %j", async (args, reason) => {
  const { error, printed } = await rejectionOf(args);
  expect(error.exitCode).toBeGreaterThan(0);
  expect(error.message).toMatch(reason);
  expect(error.message + printed).not.toContain("hunter2");
});

test.each([
  [
    [],
    /--with-person: cannot read .*effects.sqlite: the file does not exist.*PENSTOCK_EFFECTS_URL/,
  ],
  [["--effects-url", "sqlite:/nowhere/x.sqlite"], /\/nowhere\/x.sqlite: the file does not exist/],
  [["--effects-url", "mysql://me:hunter2@db/x"], /PENSTOCK_EFFECTS_URL|--effects-url/],
])("a sink with persons reports an invalid effects database: %j", async (args, reason) => {
  const to = ["postgres", "--with-person", "--to", "postgres://127.0.0.1:1/x"];
  const { error, printed } = await rejectionOf([...to, "--data-dir", temporaryFolder(), ...args]);
  expect(error.exitCode).toBeGreaterThan(0);
  expect(error.message).toMatch(reason);
  expect(error.message + printed).not.toContain("hunter2");
});

// The error about a folder in /proc is that its parent folder is missing.
test.each(["/proc/warehouse", "/proc/a/b", "/dev/null/warehouse"])(
  "penstock sink parquet %s fails if the folder can never be created",
  async (folder) => {
    expect(await saidTo(`parquet ${folder}`)).toMatchObject({
      message: expect.stringMatching(
        /cannot be created or written to: E[A-Z]+: .*name another folder/,
      ),
      exitCode: 1,
    });
  },
);
