import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { fileWith, linesOf, runImport } from "./import-kit.ts";

interface TakenBatch {
  readonly batch: readonly { readonly properties: { readonly n: number } }[];
}

test("a stopped import waits for the pending answer", async () => {
  const taken: number[] = [];
  let stopping: AbortController | undefined;
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    request.on("end", () => {
      const { batch } = JSON.parse(body) as TakenBatch;
      taken.push(...batch.map(({ properties }) => properties.n));
      if (taken.length > 50) stopping?.abort();
      response.end(JSON.stringify({ status: "Ok", accepted: batch.length, dropped: 0 }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const args = ["--url", url, "--key", "k", "--batch-bytes", "5000", fileWith(linesOf(500))];
  const first = await runImport(args, {
    stopper: (stop) => {
      stopping = stop;
    },
  });
  stopping = undefined;
  expect(first.error).toMatchObject({ exitCode: 1 });
  expect(String(first.error)).toContain("stopped before the end; run the same command to resume");
  const before = taken.length;
  expect(before).toBeLessThan(500);
  expect(first.out).toContain(`${before} events stored`);
  const { out } = await runImport(args);
  expect(out).toContain("500 events stored");
  expect(taken).toEqual([...Array(500).keys()]);
});

test("an import that cannot write its state sends nothing", async () => {
  let requests = 0;
  const server = createServer((_, response) => {
    requests++;
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const state = `${fileWith("")}-none/state`;
  const args = ["--url", url, "--key", "k", "--state", state, fileWith(linesOf(5))];
  const { error } = await runImport(args);
  expect(String(error)).toContain("name another file with --state");
  expect(requests).toBe(0);
});
