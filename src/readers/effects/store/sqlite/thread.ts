import { parentPort, workerData } from "node:worker_threads";
import { SqliteLongRead } from "./long-read.ts";
import { SqliteLookups } from "./lookups.ts";
import { SqliteQueries } from "./queries.ts";
import type { Answer, Call, ThreadData } from "./thread-link.ts";
import { SqliteWriter } from "./writer.ts";

const { role, file } = workerData as ThreadData;
let side: ReturnType<typeof makeSide> | undefined;

parentPort?.on("message", ({ id, method, args }: Call) => {
  parentPort?.postMessage(answer(id, method, args));
});

function answer(id: number, method: string, args: readonly unknown[]): Answer {
  try {
    side ??= makeSide();
    const methods = side as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
    return { id, value: methods[method]?.(...args), error: undefined };
  } catch (error) {
    if (!(error instanceof Error)) return { id, value: undefined, error: { message: `${error}` } };
    const { name, message, stack } = error;
    return { id, value: undefined, error: { name, message, stack } };
  }
}

function makeSide() {
  switch (role) {
    case "writer":
      return new SqliteWriter(file);
    case "lookups":
      return new SqliteLookups(file);
    case "reader":
      return new SqliteQueries(file);
    case "long_read":
      return new SqliteLongRead(file);
  }
}
