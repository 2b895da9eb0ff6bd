// The part of the table of settings that is of `penstock sink`, which takes events out of the
// streams into a database. The gateway itself reads none of these.

import { text, wholeNumber } from "./parsers.ts";
import { setting } from "./setting.ts";

export const sinkSettings = {
  sinkTo: setting({
    parse: text,
    fallback: undefined,
    unit: "url",
    why: "where `penstock sink` writes, as --to says it: here a password is not among the arguments of the process",
  }),
  sinkHost: setting({
    parse: text,
    fallback: "127.0.0.1",
    unit: "address",
    why: "where `penstock sink` shows its metrics and health: on loopback unless you say otherwise",
  }),
  sinkPort: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "9466",
    unit: "port",
    why: "where `penstock sink` shows its metrics and health; 0 takes any free port",
  }),
  sinkBatchEvents: setting({
    parse: wholeNumber(1, 1_000_000),
    fallback: "10000",
    unit: "events",
    why: "`penstock sink` commits at so many, or at the next two",
  }),
  sinkBatchBytes: setting({
    parse: wholeNumber(65_536, 268_435_456),
    fallback: "16777216",
    unit: "bytes",
    why: "of messages in a batch of `penstock sink`, which holds up to four times as much; one message may be more",
  }),
  sinkBatchAgeMs: setting({
    parse: wholeNumber(1, 60_000),
    fallback: "1000",
    unit: "milliseconds",
    why: "how long the first event of a batch waits for others: how late an event is in the target of `penstock sink`",
  }),
  sinkFileBytes: setting({
    parse: wholeNumber(65_536, 68_719_476_736),
    fallback: "536870912",
    unit: "bytes",
    why: "`penstock sink parquet` makes events into files when it has so many, before they are compressed; it takes up to three times as much of the disk",
  }),
  sinkFileSeconds: setting({
    parse: wholeNumber(1, 86_400),
    fallback: "600",
    unit: "seconds",
    why: "`penstock sink parquet` makes events into files when the first of them is so old: how late an event is in a file",
  }),
} as const;
