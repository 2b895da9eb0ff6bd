// The part of the table of settings that is of `penstock effects`, the process beside the gateway.
// The gateway itself reads none of these.

import { effectsUrl, text, wholeNumber } from "./parsers.ts";
import { setting } from "./setting.ts";

export const effectsSettings = {
  effectsUrl: setting({
    parse: effectsUrl,
    fallback: "sqlite:",
    unit: "url",
    why: "the database of what events do to people and groups: sqlite:<file>, sqlite: for effects.sqlite in the data folder, or postgres://user:password@host/database",
  }),
  effectsHost: setting({
    parse: text,
    fallback: "127.0.0.1",
    unit: "address",
    why: "where `penstock effects` shows people, groups and usage over HTTP, to whoever can reach it: on loopback unless you say otherwise",
  }),
  effectsPort: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "9465",
    unit: "port",
    why: "where `penstock effects` answers HTTP, with its own metrics and health; 0 takes any free port",
  }),
  effectsLargeBytesMax: setting({
    parse: wholeNumber(0, 1_073_741_824),
    fallback: "67108864",
    unit: "bytes",
    why: "what those people and groups of a project may have together whose properties are more than 64 KiB each: to write to one of them takes milliseconds, for which all other projects wait. A rebuild and verify want the same",
  }),
} as const;
