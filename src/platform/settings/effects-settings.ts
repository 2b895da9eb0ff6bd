import { effectsUrl, text, wholeNumber } from "./parsers.ts";
import { setting } from "./setting.ts";

export const effectsSettings = {
  effectsUrl: setting({
    parse: effectsUrl,
    fallback: "sqlite:",
    unit: "url",
    why: "database of people and groups: sqlite:<file>, sqlite: for effects.sqlite in the data folder, or postgres://user:password@host/database",
  }),
  effectsHost: setting({
    parse: text,
    fallback: "127.0.0.1",
    unit: "address",
    why: "host of the HTTP port of `penstock effects`; anyone who can reach it can read people, groups and usage",
  }),
  effectsPort: setting({
    parse: wholeNumber(0, 65_535),
    fallback: "9465",
    unit: "port",
    why: "HTTP port of `penstock effects`, with its metrics and health; 0 picks a free port",
  }),
  effectsLargeBytesMax: setting({
    parse: wholeNumber(0, 1_073_741_824),
    fallback: "67108864",
    unit: "bytes",
    why: "maximum bytes of people and groups of a project whose properties exceed 64 KiB each; a write to one of them delays all other projects by milliseconds. A rebuild and verify need the same value",
  }),
} as const;
