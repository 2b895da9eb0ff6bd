import { appendFileSync, copyFileSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { answeringServer } from "./answering-server.ts";
import { fileWith, linesOf, runImport } from "./import-kit.ts";

const lines = (count: number): string[] => linesOf(count).split(/(?<=\n)/);

test.each([
  ["the only request", 5],
  ["one of several requests", 50],
])("a resumed import repeats its last request (%s) before new lines", async (_, count) => {
  const all = lines(count + 3);
  const file = fileWith(all.slice(0, count).join(""));
  const state = `${file}.penstock-import`;
  const { port, bodies } = await answeringServer({}, () => {
    if (bodies.at(-1)?.includes(`"n":${count - 1}}`) === true) copyFileSync(state, `${state}.then`);
  });
  const args = ["--url", `http://127.0.0.1:${port}`, "--key", "k", "--batch-bytes", "2000", file];
  await runImport(args);
  const last = bodies.at(-1);
  copyFileSync(`${state}.then`, state);
  appendFileSync(file, all.slice(count).join(""));
  const sentBefore = bodies.splice(0).length;
  const { error } = await runImport(args);
  expect(error).toBeUndefined();
  expect(bodies).toHaveLength(2);
  expect(bodies[0]).toBe(last);
  expect(sentBefore > 1).toBe(count > 5);
  expect(JSON.parse(readFileSync(state, "utf8"))).toMatchObject({
    lines: count + 3,
    finished: true,
  });
});

test.each([
  ["a blank line", "\n"],
  ["a line that is too long", `${JSON.stringify({ event: "e", x: "x".repeat(3_000) })}\n`],
])(
  "a resumed import repeats its last request if the file continues with %s",
  async (_, between) => {
    const all = lines(12);
    const file = fileWith(all.slice(0, 10).join(""));
    const state = `${file}.penstock-import`;
    const { port, bodies } = await answeringServer({}, () => {
      copyFileSync(state, `${state}.then`);
    });
    const url = `http://127.0.0.1:${port}`;
    const args = ["--url", url, "--key", "k", "--line-bytes-max", "2000", file];
    await runImport(args);
    copyFileSync(`${state}.then`, state);
    appendFileSync(file, between + all.slice(10).join(""));
    const { error } = await runImport(args);
    expect(error?.exitCode).toBe(between.trim() === "" ? undefined : 1);
    expect(bodies).toHaveLength(3);
    expect(bodies[1]).toBe(bodies[0]);
  },
);

test("the state of an import omits an address that never responded", async () => {
  const one = await answeringServer({}, () => copyFileSync(state, `${state}.then`));
  const other = await answeringServer();
  const file = fileWith(linesOf(5));
  const state = `${file}.penstock-import`;
  const args = (port: number) => ["--url", `http://127.0.0.1:${port}`, "--key", "k", file];
  await runImport(args(one.port));
  copyFileSync(`${state}.then`, state);
  const { out, error } = await runImport(args(other.port));
  expect(error).toBeUndefined();
  expect(out).toContain("5 events stored");
});

test("an import killed twice in one request repeats that request unchanged", async () => {
  const all = lines(13);
  const file = fileWith(all.slice(0, 10).join(""));
  const state = `${file}.penstock-import`;
  const { port, bodies } = await answeringServer({}, () => {
    if (bodies.length === 1) copyFileSync(state, `${state}.then`);
  });
  const args = ["--url", `http://127.0.0.1:${port}`, "--key", "k", file];
  await runImport(args);
  const [last] = bodies.splice(0);
  copyFileSync(`${state}.then`, state);
  appendFileSync(file, all.slice(10).join(""));
  for (const _ of ["killed", "resumed"]) {
    bodies.splice(0);
    await runImport(args);
    expect(bodies).toHaveLength(2);
    expect(bodies[0]).toBe(last);
    copyFileSync(`${state}.then`, state);
  }
});
