// Changes of the outbox wait for the end of the writer's transaction.

import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { OpenTransaction, outsideOf } from "../../../../src/readers/effects/writer/transaction.ts";

test("removes rows from the outbox only while no transaction is open, and reads them at any time", async () => {
  const done: string[] = [];
  const transaction = new OpenTransaction();
  const outbox = outsideOf(transaction, {
    outbox: async () => {
      done.push("outbox");
      return [];
    },
    published: async (ids) => void done.push(`published ${ids.join()}`),
    trimOutbox: async () => done.push("trimmed"),
  });
  await outbox.published(["a"]);
  transaction.begin();
  const waiting = Promise.all([outbox.published(["b"]), outbox.trimOutbox(1)]);
  await outbox.outbox(1, 0);
  // A later part of the same.
  transaction.begin();
  await turn();
  expect(done).toEqual(["published a", "outbox"]);
  transaction.end();
  await waiting;
  expect(done.slice(2)).toEqual(["published b", "trimmed"]);
});
