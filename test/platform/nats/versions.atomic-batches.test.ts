// The behaviour of nats-server that the publisher relies on for atomic batches.

import { jetstreamManager } from "@nats-io/jetstream";
import { headers, type Msg } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { afterAll, describe, expect, test } from "vitest";
import { readPubAck } from "../../../src/gateway/publish/pub-ack.ts";
import { apiCodes, batchRefusedCodes } from "../../../src/platform/nats/api.ts";
import { takesAtomicBatches } from "../../../src/platform/nats/versions.ts";
import { natsServerForFile } from "../../kit/for-file.ts";

const batchesOfServerMax = 3;
const messagesMax = 100;
const server = await natsServerForFile({
  config: `
listen: "127.0.0.1:$PORT"
jetstream {
  store_dir: $NATS_STORE
  max_file_store: 1GB
  sync_interval: always
  limits { batch { max_msgs: ${messagesMax}, max_inflight_per_stream: ${batchesOfServerMax} } }
}`,
});
const connection = await connect({ servers: server.url });
afterAll(() => connection.close());
const manager = await jetstreamManager(connection);
let streams = 0;

interface BatchMessage {
  readonly id: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

interface Stream {
  readonly name: string;
  send(batch: string, messages: readonly BatchMessage[]): Promise<Msg>;
  publish(batch: string, message: BatchMessage, sequence: number): void;
  ids(): Promise<string[]>;
}

async function newStream(config: object = { allow_atomic: true }): Promise<Stream> {
  const name = `S${++streams}`;
  await manager.streams.add({ name, subjects: [`${name}.*`], ...config });
  const headersOf = (batch: string, { id, headers: more = {} }: BatchMessage, sequence: number) => {
    const own = {
      "Nats-Msg-Id": id,
      "Nats-Batch-Id": batch,
      "Nats-Batch-Sequence": String(sequence),
      ...more,
    };
    const head = headers();
    for (const [key, value] of Object.entries(own)) if (value !== undefined) head.set(key, value);
    return head;
  };
  return {
    name,
    async send(batch, messages) {
      for (const [at, message] of messages.slice(0, -1).entries()) {
        connection.publish(`${name}.a`, "x", { headers: headersOf(batch, message, at + 1) });
      }
      const last = messages.at(-1)!;
      const commit = { ...last, headers: { "Nats-Batch-Commit": "1", ...last.headers } };
      const head = headersOf(batch, commit, messages.length);
      return await connection.request(`${name}.a`, "x", { headers: head, timeout: 10_000 });
    },
    publish(batch, message, sequence) {
      connection.publish(`${name}.a`, "x", { headers: headersOf(batch, message, sequence) });
    },
    async ids() {
      const { state } = await manager.streams.info(name);
      const found: string[] = [];
      for (let seq = 1; seq <= state.last_seq; seq++) {
        const message = await manager.streams.getMessage(name, { seq });
        found.push(message?.header.get("Nats-Msg-Id") ?? "");
      }
      return found;
    },
  };
}

function messagesOf(...ids: string[]): BatchMessage[] {
  return ids.map((id) => ({ id }));
}

function codeOf(answer: Msg): unknown {
  return answer.json<{ error?: { err_code?: number } }>().error?.err_code;
}

test("nats-server acknowledges a batch once with its last sequence", async () => {
  const stream = await newStream();
  const answer = await stream.send("one", messagesOf("a", "b", "c"));
  expect(answer.json()).toEqual({ stream: stream.name, seq: 3, batch: "one", count: 3 });
  expect(await stream.ids()).toEqual(["a", "b", "c"]);
  expect(readPubAck(answer, { name: stream.name, domain: "" })).toMatchObject({ seq: 3, count: 3 });
});

test("nats-server reports in metadata that it stores batches correctly", async () => {
  const [allowed, plain] = [await newStream(), await newStream({})];
  const configOf = async ({ name }: Stream) => (await manager.streams.info(name)).config;
  expect(takesAtomicBatches(await configOf(allowed))).toBe(true);
  expect(takesAtomicBatches(await configOf(plain))).toBe(false);
});

describe("a batch that is sent to nats-server again", () => {
  test("is rejected as a whole even if only one message is a duplicate", async () => {
    const stream = await newStream();
    await stream.send("one", messagesOf("a", "b", "c"));
    for (const again of [
      await stream.send("one", messagesOf("a", "b", "c")),
      await stream.send("two", messagesOf("a", "b", "c")),
      await stream.send("three", messagesOf("x", "b", "y")),
    ]) {
      expect(codeOf(again)).toBe(apiCodes.atomicPublishContainsDuplicate);
      expect(readPubAck(again, { name: stream.name, domain: "" })).toBe("batch_refused");
    }
    expect(await stream.ids()).toEqual(["a", "b", "c"]);
  });

  test("is recognised if it is sent as single messages", async () => {
    const stream = await newStream();
    await stream.send("one", messagesOf("a", "b", "c"));
    for (const [at, id] of ["a", "b", "c", "d"].entries()) {
      const head = headers();
      head.set("Nats-Msg-Id", id);
      const answer = await connection.request(`${stream.name}.a`, "x", {
        headers: head,
        timeout: 10_000,
      });
      const ack = { stream: stream.name, seq: at + 1 };
      expect(answer.json()).toEqual(id === "d" ? ack : { ...ack, duplicate: true });
    }
  });
});

const many = Array.from({ length: messagesMax + 1 }, (_, at) => `m${at}`);
const refusals: readonly {
  readonly why: string;
  readonly code: number;
  readonly config?: object;
  readonly batch?: string;
  readonly messages: readonly BatchMessage[];
}[] = [
  {
    why: "the stream does not take batches",
    code: apiCodes.atomicPublishDisabled,
    config: {},
    messages: messagesOf("a", "b"),
  },
  {
    why: "the commit has no sequence",
    code: apiCodes.atomicPublishMissingSequence,
    messages: [{ id: "a" }, { id: "b", headers: { "Nats-Batch-Sequence": undefined } }],
  },
  {
    why: "a message is missing",
    code: apiCodes.atomicPublishIncompleteBatch,
    messages: [{ id: "a" }, { id: "b", headers: { "Nats-Batch-Sequence": "3" } }],
  },
  {
    why: "the first message is missing",
    code: apiCodes.atomicPublishIncompleteBatch,
    messages: [{ id: "b", headers: { "Nats-Batch-Sequence": "2" } }],
  },
  {
    why: "a message has a header that batches do not allow",
    code: apiCodes.atomicPublishUnsupportedHeader,
    messages: [{ id: "a", headers: { "Nats-Expected-Last-Msg-Id": "z" } }, { id: "b" }],
  },
  {
    why: "the id of the batch is too long",
    code: apiCodes.atomicPublishInvalidBatchId,
    batch: "i".repeat(65),
    messages: messagesOf("a", "b"),
  },
  {
    why: "there are more messages than the server takes",
    code: apiCodes.atomicPublishTooLargeBatch,
    messages: messagesOf(...many),
  },
  {
    why: "the commit is invalid",
    code: apiCodes.atomicPublishInvalidBatchCommit,
    messages: [{ id: "a" }, { id: "b", headers: { "Nats-Batch-Commit": "2" } }],
  },
  {
    why: "one message id is in it twice",
    code: apiCodes.atomicPublishContainsDuplicate,
    messages: messagesOf("a", "b", "a"),
  },
];

describe("a batch that nats-server rejects", () => {
  test.each(refusals)(
    "gets $code and is not stored: $why",
    async ({ code, config, batch = "one", messages }) => {
      const stream = await newStream(config);
      const answer = await stream.send(batch, messages);
      expect(codeOf(answer)).toBe(code);
      expect(readPubAck(answer, { name: stream.name, domain: "" })).toBe("batch_refused");
      expect(await stream.ids()).toEqual([]);
    },
  );

  test("gets 10210 or 10176 if there are too many batches", async () => {
    const stream = await newStream();
    for (let open = 0; open < batchesOfServerMax; open++) {
      stream.publish(`open ${open}`, { id: `o${open}` }, 1);
    }
    // The first message of a batch of one message commits the batch.
    const alone = await stream.send("too many", messagesOf("a"));
    expect(codeOf(alone)).toBe(apiCodes.atomicPublishTooManyInFlight);
    expect(readPubAck(alone, { name: stream.name, domain: "" })).toBe("batch_refused");
    const answer = await stream.send("one more", messagesOf("b", "c"));
    expect(codeOf(answer)).toBe(apiCodes.atomicPublishIncompleteBatch);
    expect(await stream.ids()).toEqual([]);
  });

  test("gets 10077 if the stream has too little space", async () => {
    const stream = await newStream({ allow_atomic: true, max_bytes: 300, discard: "new" });
    const answer = await stream.send("one", messagesOf("a", "b", "c", "d"));
    expect(codeOf(answer)).toBe(apiCodes.streamStoreFailed);
    expect(readPubAck(answer, { name: stream.name, domain: "" })).toBe("stream_full");
    expect(await stream.ids()).toEqual([]);
  });

  test("gets 10054 if a message is too large for the stream", async () => {
    const stream = await newStream({ allow_atomic: true, max_msg_size: 120 });
    const large = { id: "a", headers: { Large: "l".repeat(100) } };
    const answer = await stream.send("one", [large, { id: "b" }]);
    expect(readPubAck(answer, { name: stream.name, domain: "" })).toBe("batch_refused");
    const last = await stream.send("two", [{ id: "b" }, large]);
    expect(codeOf(last)).toBe(apiCodes.streamMessageExceedsMaximum);
    expect(await stream.ids()).toEqual([]);
  });
});

test("the tests cover every code that rejects a batch", () => {
  const tried = refusals.map(({ code }) => code);
  expect([...new Set([...tried, apiCodes.atomicPublishTooManyInFlight])].sort()).toEqual(
    [...batchRefusedCodes].sort(),
  );
});
