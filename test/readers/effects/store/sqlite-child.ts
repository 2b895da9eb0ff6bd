// A separate process with a database file: `node sqlite-child.ts <role> <file>`. Each printed line
// is JSON.

import { SqliteReader } from "../../../../src/readers/effects/store/sqlite/reader.ts";
import { SqliteStore } from "../../../../src/readers/effects/store/sqlite/store.ts";
import { commitOf, personRow, project, propertiesOf } from "./row-kit.ts";

const [role, file = ""] = process.argv.slice(2);

function say(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

async function writeForEver(): Promise<void> {
  const store = new SqliteStore({ file });
  await store.open();
  for (let after = await store.lastCommit(); ; after++) {
    const members = [personRow(`a-${after}`), personRow(`b-${after}`)];
    await store.commit(commitOf(after, { members }));
    say(after + 1);
  }
}

async function open(): Promise<void> {
  const store = new SqliteStore({ file });
  try {
    await store.open();
    say("opened");
  } catch (error) {
    say(messageOf(error));
  }
  await store.close();
}

async function read(): Promise<void> {
  const reader = new SqliteReader({ file });
  try {
    say((await reader.personByDistinctId(project, "ann"))?.propertiesJson);
    say(await reader.totals());
  } catch (error) {
    say(messageOf(error));
  }
  await reader.close();
}

async function writeTooMuch(): Promise<void> {
  const store = new SqliteStore({ file });
  await store.open();
  const properties = propertiesOf({ text: JSON.stringify("x".repeat(100_000)) });
  const many = Array.from({ length: 40 }, (_, n) => personRow(`id-${n}`, { properties }));
  try {
    await store.commit(commitOf(0, { members: many }));
  } catch (error) {
    say(messageOf(error));
  }
  await store.commit(commitOf(0, { members: [personRow("ann")] }));
  say(await store.reader.totals());
  await store.close();
}

/**
 * Ids have a random order in the index, so a statement changes more pages than its undo data in
 * memory can hold.
 */
async function writeMany(): Promise<void> {
  const store = new SqliteStore({ file });
  await store.open();
  try {
    const members = Array.from({ length: 20_000 }, (_, n) => personRow(`id-${n}`));
    await store.commit(commitOf(0, { members }));
    const others = Array.from({ length: 200 }, (_, n) => personRow(`other-${n}`));
    await store.commit(commitOf(1, { members: others }));
    say(await store.reader.totals());
  } catch (error) {
    say(messageOf(error));
  }
  await store.close();
}

const roles = { writeForEver, open, read, writeTooMuch, writeMany };
await roles[role as keyof typeof roles]();
