import { text, wholeNumber } from "./parsers.ts";
import { setting } from "./setting.ts";

export const sinkSettings = {
  sinkTo: setting({
    parse: text,
    fallback: undefined,
    unit: "url",
    why: "target of `penstock sink`; unlike an argument, a password in this variable is not visible in the process list",
  }),
  sinkHost: setting({
    parse: text,
    fallback: "127.0.0.1",
    unit: "address",
    why: "host of the metrics and health of `penstock sink`",
  }),
  sinkPort: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "9466",
    unit: "port",
    why: "port of the metrics and health of `penstock sink`; 0 picks a free port",
  }),
  sinkBatchEvents: setting({
    parse: wholeNumber(1, 1_000_000),
    fallback: "10000",
    unit: "events",
    why: "maximum events per commit of `penstock sink`; the next two settings also end a batch",
  }),
  sinkBatchBytes: setting({
    parse: wholeNumber(65_536, 268_435_456),
    fallback: "16777216",
    unit: "bytes",
    why: "maximum bytes of messages per batch of `penstock sink`, which holds up to four batches; a single message may exceed it",
  }),
  sinkBatchAgeMs: setting({
    parse: wholeNumber(1, 60_000),
    fallback: "1000",
    unit: "milliseconds",
    why: "maximum time that the first event of a batch of `penstock sink` waits for others; bounds the delay of an event",
  }),
  sinkFileBytes: setting({
    parse: wholeNumber(65_536, 68_719_476_736),
    fallback: "536870912",
    unit: "bytes",
    why: "uncompressed bytes at which `penstock sink parquet` writes files; it uses up to three times as much disk",
  }),
  sinkFileSeconds: setting({
    parse: wholeNumber(1, 86_400),
    fallback: "600",
    unit: "seconds",
    why: "age of the first event at which `penstock sink parquet` writes files; bounds the delay of an event. Streams must retain events for longer",
  }),
} as const;
