import { expect, test } from "vitest";
import { commandLine } from "../../src/app/command-line.ts";
import { commandWorld } from "../kit/command-context.ts";

function commandNamed(...names: string[]) {
  let command = commandLine(commandWorld().context);
  for (const name of names) command = command.commands.find((one) => one.name() === name)!;
  return command;
}

test.each([
  [["erase"], "--distinct-id", "--nats-url"],
  [["sink", "postgres"], "--projects", "--nats-url"],
  [["doctor"], "--strict", "--host"],
])("the help of %j lists its own options before its settings", (names, own, setting) => {
  const help = commandNamed(...names).helpInformation();
  const [before, below, ...more] = help.split("\nSettings:\n");
  expect(more).toEqual([]);
  expect(before).toContain(`  ${own}`);
  expect(before).not.toContain(`  ${setting}`);
  expect(below).toContain(`  ${setting}`);
  expect(below).not.toContain(`  ${own}`);
});
