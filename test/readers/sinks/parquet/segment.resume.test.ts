import { type FileHandle, open } from "node:fs/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { filesOf, Segment } from "../../../../src/readers/sinks/parquet/segment.ts";
import { newFolder } from "./parquet-kit.ts";

test("a journal is on the disk before a segment goes on behind its last line", async () => {
  const files = filesOf(newFolder(), 1);
  await (await Segment.begin(files, { number: 1, positions: [], incidents: [] })).close();
  const journal = await open(files.journal, "r");
  onTestFinished(() => journal.close());
  const { ino } = await journal.stat();
  const prototype: FileHandle = Object.getPrototypeOf(journal);
  const synced: number[] = [];
  const sync = prototype.sync;
  const spy = vi.spyOn(prototype, "sync").mockImplementation(async function (this: FileHandle) {
    await sync.call(this);
    synced.push((await this.stat()).ino);
  });
  onTestFinished(() => spy.mockRestore());
  const segment = await Segment.resume(files);
  expect(synced).toContain(ino);
  await segment.close();
});
