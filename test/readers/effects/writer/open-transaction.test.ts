import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { OpenTransaction, outsideOf } from "../../../../src/readers/effects/writer/transaction.ts";

test("outbox rows are removed only while no transaction is open", async () => {
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
  transaction.begin();
  await turn();
  expect(done).toEqual(["published a", "outbox"]);
  transaction.end();
  await waiting;
  expect(done.slice(2)).toEqual(["published b", "trimmed"]);
});
