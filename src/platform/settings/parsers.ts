import { readText } from "../base/pem.ts";

/** Returns the value, or throws an Error whose message completes "PENSTOCK_X: …". */
type Parse<T> = (text: string) => T;

export function text(value: string): string {
  if (value === "") throw new Error("must not be empty");
  return value;
}

export function wholeNumber(min: number, max: number): Parse<number> {
  return (value) => {
    const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= min && number <= max))
      throw new Error(`must be a whole number from ${min} to ${max} (got "${value}")`);
    return number;
  };
}

export function httpUrl(example: string): Parse<string> {
  return (value) => {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol))
      throw new Error(`must be a URL such as ${example}`);
    if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
      throw new Error("must not have a user, a query or a fragment");
    return url.href.replace(/\/+$/, "");
  };
}

/** Parses `key=value` pairs with percent-encoded values. Error messages contain no values. */
export function keyValues(value: string): Readonly<Record<string, string>> {
  const pairs = value.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair, at) => {
      const [, key = "", encoded = ""] = /^\s*([!-<>-~]+?)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
      try {
        if (key !== "") return [key, decodeURIComponent(encoded)];
      } catch {}
      throw new Error(
        `must be pairs such as key=value,other=value, with percent-encoded values (pair ${at + 1} is not)`,
      );
    }),
  );
}

export function ratio(value: string): number {
  const number = /^\d*\.?\d+(?:e-?\d+)?$/i.test(value) ? Number(value) : Number.NaN;
  if (!(number >= 0 && number <= 1))
    throw new Error(`must be a number from 0 to 1 (got "${value}")`);
  return number;
}

const durationUnitsMs: Record<string, number> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

export function durationMs(value: string): number {
  const match = /^(\d{1,9})([smhd])$/.exec(value);
  const unitMs = durationUnitsMs[match?.[2] ?? ""];
  if (match === null || unitMs === undefined || Number(match[1]) === 0)
    throw new Error(`must be a duration such as 30m, 12h or 7d (got "${value}")`);
  return Number(match[1]) * unitMs;
}

export function flag(value: string): boolean {
  if (value === "true" || value === "1") return true;
  if (value === "false" || value === "0") return false;
  throw new Error(`must be true or false (got "${value}")`);
}

const tokenForm = /^[A-Za-z0-9._~+/-]{16,256}={0,2}$/;
const tokenRule =
  "16 to 256 of the characters A-Z a-z 0-9 - . _ ~ + /, such as from `openssl rand -hex 32`";

export function portToken(value: string): string {
  if (!tokenForm.test(value)) throw new Error(`must be ${tokenRule}`);
  return value;
}

export function portTokenFile(file: string): readonly string[] {
  const lines = readText(file).split(/\r?\n/);
  const tokens = lines.map((line) => line.trim()).filter((line) => line !== "");
  if (tokens.length === 0) throw new Error(`${file} contains no token`);
  const wrong = tokens.findIndex((token) => !tokenForm.test(token));
  if (wrong >= 0) throw new Error(`token ${wrong + 1} in ${file} must be ${tokenRule}`);
  return tokens;
}

export function oneOf<const T extends string>(...values: T[]): Parse<T> {
  return (value) => {
    const found = values.find((candidate) => candidate === value);
    if (found === undefined)
      throw new Error(`must be one of ${values.join(", ")} (got "${value}")`);
    return found;
  };
}

/** The domain must be a single token of a subject, because it is used in `$JS.<domain>.API`. */
export function jetStreamDomain(value: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(value))
    throw new Error(`must match [A-Za-z0-9_-]{1,64} (got "${value}")`);
  return value;
}

export function subjectPrefix(value: string): string {
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(value))
    throw new Error(`must match [a-z][a-z0-9_]{0,31} (got "${value}")`);
  return value;
}

/** Error messages never contain the value, because it may contain a password. */
export function natsUrl(value: string): string {
  const users = new Set<string | undefined>();
  for (const server of value.split(",")) {
    const match = /^(?:(?:nats|tls):\/\/)?(?:([^\s/]*)@)?([^\s/@]+)$/.exec(server.trim());
    if (match === null || !URL.canParse(`http://${match[2]}`))
      throw new Error(
        "must be nats://host:port or tls://host:port, or a comma-separated list of them",
      );
    users.add(match[1]);
  }
  users.delete(undefined);
  if (users.size > 1) throw new Error("must have the same user and password in all URLs");
  return value;
}

/** Error messages never contain the value, because it may contain a password. */
export function effectsUrl(value: string): string {
  if (/^sqlite:[^\0]*$/.test(value)) return value;
  if (/^postgres(ql)?:\/\/[^\s]+$/.test(value) && URL.canParse(value)) return value;
  throw new Error("must be sqlite:<file>, sqlite:, or postgres://user:password@host/database");
}

export interface Setting<T, Fallback extends string | undefined> {
  readonly parse: Parse<T>;
  readonly fallback: Fallback;
  readonly unit: string;
  readonly why: string;
}

export function setting<T, Fallback extends string | undefined>(
  row: Setting<T, Fallback>,
): Setting<T, Fallback> {
  return row;
}
