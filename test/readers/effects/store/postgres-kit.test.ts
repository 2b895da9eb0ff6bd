import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { postgresForFile } from "../../../kit/for-file.ts";
import { isRunningStill } from "../../../kit/process-tree.ts";

const server = await postgresForFile();

async function query(text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: server.url });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test("PostgreSQL's test server keeps its commits after kill -9", async () => {
  await query("CREATE TABLE kept (n int)");
  await query("INSERT INTO kept VALUES (1)");
  const before = server.pid;
  await server.kill();
  await expect(query("SELECT 1")).rejects.toThrow("ECONNREFUSED");
  await server.restart();
  expect(server.pid).not.toBe(before);
  expect(await query("SELECT n FROM kept")).toEqual([{ n: 1 }]);
});

test("PostgreSQL's test server restores an older copy of its data", async () => {
  await query("CREATE TABLE times (n int)");
  const copy = await server.copyData();
  await query("INSERT INTO times VALUES (2)");
  expect(await query("SELECT n FROM times")).toEqual([{ n: 2 }]);
  await server.restoreData(copy);
  expect(await query("SELECT n FROM times")).toEqual([]);
});

test("PostgreSQL's test server answers no client while frozen", async () => {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  server.freeze();
  let isAnswered = false;
  const answer = client.query("SELECT 1 AS n").then(({ rows }) => {
    isAnswered = true;
    return rows;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isAnswered).toBe(false);
  server.thaw();
  expect(await answer).toEqual([{ n: 1 }]);
  await client.end();
});

test("PostgreSQL's test server is removed if the test process is killed", async () => {
  const kit = path.resolve(import.meta.dirname, "../../../kit/postgres.ts");
  const program = `
    const { startPostgres } = await import(${JSON.stringify(kit)});
    const { pid, folder } = await startPostgres();
    console.log(JSON.stringify({ pid, folder }));
    setInterval(() => {}, 1_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const said = await new Promise<string>((resolve) =>
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      if (text.startsWith("{")) resolve(text);
    }),
  );
  const { pid, folder } = JSON.parse(said) as { pid: number; folder: string };
  expect([isRunningStill(pid), existsSync(folder)]).toEqual([true, true]);
  child.kill("SIGKILL");
  await expect.poll(() => [isRunningStill(pid), existsSync(folder)]).toEqual([false, false]);
});
