import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, test } from "vitest";
import { answeringServer } from "./answering-server.ts";
import { fileWith, linesOf, runImport } from "./import-kit.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

describe("the state of an import", () => {
  test("accepts another name of this host as the same address", async () => {
    const { port, taken } = await answeringServer();
    const file = fileWith(linesOf(5));
    await runImport(["--url", `http://127.0.0.1:${port}`, "--key", "k", file]);
    writeFileSync(file, linesOf(8));
    const { error } = await runImport(["--url", `http://localhost:${port}//`, "--key", "k", file]);
    expect(error).toBeUndefined();
    expect(taken).toEqual(upTo(8));
  });

  test("accepts a different key only with --same-project", async () => {
    const { port, taken } = await answeringServer();
    const url = `http://127.0.0.1:${port}`;
    const file = fileWith(linesOf(5));
    await runImport(["--url", url, "--key", "old", file]);
    writeFileSync(file, linesOf(8));
    const refused = await runImport(["--url", url, "--key", "new", file]);
    expect(refused.error?.message).toContain(
      `${file}.penstock-import is of an earlier run with 5 lines done: it used another key`,
    );
    expect(refused.error?.message).toContain("use --same-project");
    expect(taken).toEqual(upTo(5));
    await runImport(["--url", url, "--key", "new", "--same-project", file]);
    expect(taken).toEqual(upTo(8));
    const after = await runImport(["--url", url, "--key", "new", file]);
    expect(after.error).toBeUndefined();
    expect(after.err).toContain("was imported before");
  });

  test("rejects a different address and names the recorded address", async () => {
    const [one, other] = [await answeringServer(), await answeringServer()];
    const file = fileWith(linesOf(5));
    await runImport(["--url", `http://127.0.0.1:${one.port}`, "--key", "k", file]);
    const { error } = await runImport([
      "--url",
      `http://127.0.0.1:${other.port}`,
      "--key",
      "k2",
      file,
    ]);
    expect(error?.message).toContain(
      `it was sent to http://127.0.0.1:${one.port}/, with another key`,
    );
    expect(other.taken).toEqual([]);
  });

  test("omits user and password of the address", async () => {
    const [one, other] = [await answeringServer(), await answeringServer()];
    const file = fileWith(linesOf(5));
    const url = (user: string, port: number) => `http://${user}@127.0.0.1:${port}`;
    await runImport(["--url", url("one:secret", one.port), "--key", "k", file]);
    writeFileSync(file, linesOf(8));
    const { error } = await runImport(["--url", url("one:secret", other.port), "--key", "k", file]);
    expect(error?.message).toContain(`it was sent to http://127.0.0.1:${one.port}/`);
    expect(readFileSync(`${file}.penstock-import`, "utf8")).not.toContain("secret");
    await runImport(["--url", url("two:new", one.port), "--key", "k", file]);
    expect(one.taken).toEqual(upTo(8));
  });
});

test("a second import of a file fails while the first import runs", async () => {
  const { promise: released, resolve } = Promise.withResolvers<void>();
  const { promise: asked, resolve: hasAsked } = Promise.withResolvers<void>();
  const { port, taken } = await answeringServer({}, async () => {
    hasAsked();
    await released;
  });
  const file = fileWith(linesOf(5));
  const args = ["--url", `http://127.0.0.1:${port}`, "--key", "k", file];
  const first = runImport(args);
  await asked;
  const { error } = await runImport(args);
  resolve();
  expect(error?.message).toContain(`another import is using ${file}.penstock-import`);
  expect((await first).error).toBeUndefined();
  expect(taken).toEqual(upTo(5));
  expect(existsSync(`${file}.penstock-import.lock`)).toBe(false);
});

test("an import fails after it failed to write its state", async () => {
  const file = fileWith(linesOf(100));
  let requests = 0;
  const { port } = await answeringServer({}, () => {
    requests++;
    mkdirSync(`${file}.penstock-import.new`, { recursive: true });
  });
  const args = ["--url", `http://127.0.0.1:${port}`, "--key", "k", "--batch-bytes", "500", file];
  const { error } = await runImport(args);
  expect(error?.message).toContain(
    `cannot write the progress of the import to ${file}.penstock-import: `,
  );
  expect(requests).toBe(2);
});

test("an import follows no symbolic link at its next state file", async () => {
  const { port } = await answeringServer();
  const file = fileWith(linesOf(5));
  symlinkSync(`${file}.other`, `${file}.penstock-import.new`);
  const { error } = await runImport(["--url", `http://127.0.0.1:${port}`, "--key", "k", file]);
  expect(error).toBeUndefined();
  expect(existsSync(`${file}.other`)).toBe(false);
});

test("an import reports an incomplete last line and imports it later", async () => {
  const { port, taken } = await answeringServer();
  const [text, cut] = [linesOf(6), -30];
  const file = fileWith(text.slice(0, cut));
  const args = ["--url", `http://127.0.0.1:${port}`, "--key", "k", file];
  const { err, out, error } = await runImport(args);
  expect(error).toMatchObject({ exitCode: 1 });
  expect(err).toContain(`${file}:6: not stored: cut_off: the file ends in the middle of this line`);
  expect(out).toContain("5 events stored, 1 not");
  appendFileSync(file, text.slice(cut));
  const second = await runImport(args);
  expect(second.out).toContain("6 events stored, 0 not");
  expect(taken).toEqual(upTo(6));
});

test("an incomplete last line stays unfinished in every run", async () => {
  const { port, taken } = await answeringServer();
  const [text, cut] = [linesOf(2), -30];
  const file = fileWith(text.slice(0, cut));
  const args = ["--url", `http://127.0.0.1:${port}`, "--key", "k", file];
  for (let run = 0; run < 3; run++) {
    const { err, out } = await runImport(args);
    expect(err).toContain(`${file}:2: not stored: cut_off`);
    expect(out).toContain("1 not");
  }
  appendFileSync(file, text.slice(cut));
  const { out, error } = await runImport(args);
  expect(error).toBeUndefined();
  expect(out).toContain("2 events stored, 0 not");
  expect(taken).toEqual(upTo(2));
});

test("with --format, a file with only an incomplete line is imported later", async () => {
  const { port, taken } = await answeringServer();
  const [text, cut] = [linesOf(1), -30];
  const file = fileWith(text.slice(0, cut));
  const args = ["--url", `http://127.0.0.1:${port}`, "--key", "k", "--format", "posthog", file];
  expect((await runImport(args)).err).toContain(`${file}:1: not stored: cut_off`);
  expect((await runImport(args)).err).toContain(`${file}:1: not stored: cut_off`);
  appendFileSync(file, text.slice(cut));
  expect((await runImport(args)).error).toBeUndefined();
  expect(taken).toEqual(upTo(1));
});

test("an import accepts a complete last line without a line feed", async () => {
  const { port, taken } = await answeringServer();
  const file = fileWith(linesOf(3).trimEnd());
  const { out } = await runImport(["--url", `http://127.0.0.1:${port}`, "--key", "k", file]);
  expect(out).toContain("3 events stored, 0 not");
  expect(taken).toEqual(upTo(3));
});

test.each([[[null]], [["why"]], [[{ index: "0" }]], [[{ index: 0, code: 7 }]]])(
  "an import continues despite a malformed error list: %j",
  async (errors) => {
    const { port, taken } = await answeringServer({ errors, accepted: 3, dropped: 1 });
    const file = fileWith(linesOf(4));
    const args = ["--url", `http://127.0.0.1:${port}`, "--key", "k", file];
    const { out, error } = await runImport(args);
    expect(error).toMatchObject({ exitCode: 1 });
    expect(out).toContain("3 events stored, 1 not");
    expect(out).toContain("  not stored: 1 not_named");
    expect(taken).toEqual(upTo(4));
  },
);
