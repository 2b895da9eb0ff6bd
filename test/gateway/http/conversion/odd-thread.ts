// A conversion thread for tests. The text of a body determines the behaviour of the thread.

import { parentPort } from "node:worker_threads";

const filled: number[][] = [];

parentPort?.on("message", ({ body }: { readonly body: Uint8Array }) => {
  const text = Buffer.from(body).toString().trim();
  if (text === "throws") throw new Error("odd");
  if (text === "exits") process.exit(3);
  while (text === "hangs");
  while (text === "fills") filled.push(Array<number>(100_000).fill(0.5));
  const result = Uint8Array.from(Buffer.from(text));
  parentPort?.postMessage({ result, notes: undefined }, [result.buffer]);
});
