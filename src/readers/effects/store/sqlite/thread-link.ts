// Calls the methods of an object in a database thread in the order of the calls. Errors of known
// classes keep their class.

import { Worker } from "node:worker_threads";
import { StoreError, TooLargeError } from "../../../../platform/base/store-error.ts";
import { FencedError } from "../port.ts";
import { NewerTablesError, OlderTablesError } from "../rows/schema.ts";

export interface ThreadData {
  readonly role: "writer" | "lookups" | "reader" | "long_read";
  readonly file: string;
}

export interface Call {
  readonly id: number;
  readonly method: string;
  readonly args: readonly unknown[];
}

export interface Answer {
  readonly id: number;
  readonly value: unknown;
  readonly error: { name?: string; message: string; stack?: string | undefined } | undefined;
}

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

type MethodOf<Side> = {
  [Name in keyof Side]: Side[Name] extends (...args: never[]) => unknown ? Name : never;
}[keyof Side] &
  string;
type Method<Side, Name extends keyof Side> = Extract<Side[Name], (...args: never[]) => unknown>;

const threadFile = import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js";

export class ThreadLink<Side> {
  readonly #data: ThreadData;
  readonly #pending = new Map<number, Pending>();
  #worker: Worker | undefined;
  #lastId = 0;

  constructor(data: ThreadData) {
    this.#data = data;
  }

  call<Name extends MethodOf<Side>>(
    method: Name,
    ...args: Parameters<Method<Side, Name>>
  ): Promise<ReturnType<Method<Side, Name>>> {
    this.#worker ??= this.#start();
    const id = ++this.#lastId;
    const { promise, resolve, reject } = Promise.withResolvers<never>();
    this.#pending.set(id, { resolve, reject });
    this.#worker.postMessage({ id, method, args } satisfies Call);
    return promise;
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    try {
      await (this as unknown as ThreadLink<{ close(): void }>).call("close");
    } finally {
      this.#worker = undefined;
      await worker.terminate();
    }
  }

  #start(): Worker {
    const worker = new Worker(new URL(threadFile, import.meta.url), {
      workerData: this.#data,
      execArgv: ["--disable-warning=ExperimentalWarning"],
      name: `effects-${this.#data.role}`,
    });
    worker.on("message", ({ id, value, error }: Answer) => {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) pending?.resolve(value as never);
      else pending?.reject(errorOf(error));
    });
    let fault: unknown;
    worker.on("error", (error) => {
      fault = error;
    });
    // The calls are rejected only after the thread has ended, because the thread may hold the
    // writer's lock until then.
    worker.on("exit", (code) => {
      if (this.#worker === worker) this.#worker = undefined;
      const { role, file } = this.#data;
      const error = new StoreError(`cannot use ${file}: its thread (${role}) has ended`, {
        cause: fault ?? code,
      });
      for (const { reject } of this.#pending.values()) reject(error);
      this.#pending.clear();
    });
    return worker;
  }
}

function errorOf({ name, message, stack }: NonNullable<Answer["error"]>): Error {
  if (name === "FencedError") return new FencedError(message);
  if (name === "StoreError") return new StoreError(message);
  if (name === "TooLargeError") return new TooLargeError(message);
  if (name === "OlderTablesError") return new OlderTablesError(message);
  if (name === "NewerTablesError") return new NewerTablesError(message);
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
