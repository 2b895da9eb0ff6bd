// An HTTP client for ClickHouse. A response with status 200 may contain an exception. The user and
// the password of the URL are sent in headers, because headers are not logged.

import { readFileSync } from "node:fs";
import type { ClientRequest } from "node:http";
import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { responseTo } from "../../../platform/base/http-request.ts";
import { StoreError } from "../../../platform/base/store-error.ts";

type Cell = string | number | null | readonly Cell[];
type ClickHouseRow = readonly Cell[];

interface RequestOptions {
  readonly queryId?: string;
  readonly settings?: Readonly<Record<string, string>>;
}

const answerMsMax = 120_000;
const answerBytesMax = 268_435_456;
/** The lowest level compresses JSON to a fifth. Higher levels take many times as long. */
const gzipLevel = 1;

export class ClickHouseClient {
  readonly shown: string;
  readonly #address: ClickHouseAddress;
  readonly #agent: http.Agent;

  constructor(address: ClickHouseAddress) {
    this.#address = address;
    this.shown = address.shown;
    const options = { keepAlive: true, maxFreeSockets: 2 };
    this.#agent = address.isTls ? new https.Agent(options) : new http.Agent(options);
  }

  /** Runs a statement. Rejects with a ClickHouseError, or with a StoreError without a response. */
  async run(doing: string, sql: string, options: RequestOptions = {}): Promise<void> {
    this.#checkEmpty(doing, await this.#answer(doing, options, sql));
  }

  async rows(doing: string, sql: string, options: RequestOptions = {}): Promise<ClickHouseRow[]> {
    const text = await this.#answer(doing, options, `${sql} FORMAT JSONCompact`);
    try {
      return (JSON.parse(text) as { data: ClickHouseRow[] }).data;
    } catch {
      this.#checkEmpty(doing, text);
      throw new StoreError(
        `${this.#words(doing)}: the response is truncated or not from ClickHouse`,
      );
    }
  }

  async insert(
    doing: string,
    { sql, chunks }: { readonly sql: string; readonly chunks: Iterable<Uint8Array> },
    options: RequestOptions = {},
  ): Promise<void> {
    const settings = { ...options.settings, query: sql };
    this.#checkEmpty(doing, await this.#answer(doing, { ...options, settings }, chunks));
  }

  hold(sql: string, { queryId, settings = {} }: RequestOptions): ClientRequest {
    const request = this.#request({ ...settings, query: sql }, { queryId });
    request.setNoDelay(true);
    return request;
  }

  close(): void {
    this.#agent.destroy();
  }

  async #answer(
    doing: string,
    { queryId, settings = {} }: RequestOptions,
    body: string | Iterable<Uint8Array>,
  ): Promise<string> {
    const isText = typeof body === "string";
    const request = this.#request(
      { ...settings, wait_end_of_query: "1" },
      { queryId, agent: this.#agent, headers: isText ? {} : { "content-encoding": "gzip" } },
    );
    request.setTimeout(answerMsMax, () =>
      request.destroy(new Error(`no response for ${answerMsMax / 1_000} s`)),
    );
    const answered = answerOf(request);
    // The response is read even if the connection breaks during the request, because an early
    // response explains the error better.
    const sent = isText
      ? new Promise<void>((resolve) => request.end(body, resolve))
      : pipeline(Readable.from(body), createGzip({ level: gzipLevel }), request);
    sent.catch(() => {});
    let answer: Answer;
    try {
      answer = await answered;
    } catch (error) {
      throw new StoreError(`${this.#words(doing)}: ${faultOf(error as Error)}`, { cause: error });
    }
    if (!request.writableFinished) request.destroy();
    const { status, code, text } = answer;
    if (status !== 200 || code !== undefined)
      throw errorOf(this.#words(doing), { status, code, text });
    return text;
  }

  #checkEmpty(doing: string, text: string): void {
    if (hasException(text))
      throw errorOf(this.#words(doing), { status: 200, code: undefined, text });
  }

  #request(
    settings: Readonly<Record<string, string>>,
    { queryId, headers, agent }: RequestParts,
  ): ClientRequest {
    const { isTls, host, port, path, ca, headers: own, settings: given } = this.#address;
    const query = new URLSearchParams({ ...given, ...settings });
    if (queryId !== undefined) query.set("query_id", queryId);
    const request = (isTls ? https : http).request({
      host,
      port,
      method: "POST",
      path: `${path}?${query}`,
      agent: agent ?? false,
      headers: { ...own, ...headers },
      ...(ca === undefined ? {} : { ca }),
    });
    return request.on("error", () => {});
  }

  #words(doing: string): string {
    return `cannot ${doing} ClickHouse at ${this.shown}`;
  }
}

interface RequestParts {
  readonly queryId: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly agent?: http.Agent;
}

interface Answer {
  readonly status: number;
  readonly code: number | undefined;
  readonly text: string;
}

function faultOf({ message }: Error): string {
  return message.includes("wrong version number")
    ? "the server does not use TLS: use http:// in the URL"
    : message;
}

/** Rejects if the connection closes before the end of the response. */
export async function answerOf(request: ClientRequest): Promise<Answer> {
  const { status, headers, body } = await responseTo(request, { bytesMax: answerBytesMax });
  const code = Number(headers["x-clickhouse-exception-code"]);
  return {
    status,
    code: Number.isInteger(code) && code !== 0 ? code : undefined,
    text: body.toString("utf8"),
  };
}

export class ClickHouseError extends StoreError {
  readonly code: number | undefined;
  readonly said: string;

  constructor(message: string, { code, said }: { code: number | undefined; said: string }) {
    super(message);
    this.code = code;
    this.said = said;
  }
}

export const runningAlready = 216;
const valueCodes = new Set([
  6, 25, 26, 27, 38, 41, 53, 69, 70, 72, 117, 131, 190, 321, 349, 376, 395, 407, 469, 675, 676, 691,
]);
const hints: Readonly<Record<number, string>> = {
  60: "a table does not exist: let the sink create it, or create it with `penstock sink clickhouse --ddl`",
  81: "the database does not exist: let the sink create it, or create it with `penstock sink clickhouse --ddl`",
  115: "a parameter of the URL is not a setting of this server",
  192: "check user and password of the URL",
  193: "check user and password of the URL",
  194: "check user and password of the URL",
  202: "the server has reached its limit of queries: waiting",
  241: "the server is out of memory: waiting; smaller batches need less memory",
  242: "the table is read-only at the moment: waiting",
  252: "the server has too many parts to merge: waiting; larger batches create fewer parts",
  497: "the user lacks a privilege: grant it (see docs/guides/sink-clickhouse.md)",
  516: "check user and password of the URL",
};
const shownMax = 300;

export function errorOf(
  doing: string,
  { status, code, text }: { status: number; code: number | undefined; text: string },
): ClickHouseError {
  const number = code ?? codeIn(text);
  const said = plainText(text);
  const hint = hints[number ?? 0] ?? byStatus(status);
  const isOfValue = number !== undefined && valueCodes.has(number);
  const shown = isOfValue ? `it refuses a value (code ${number})` : said.slice(0, shownMax);
  const words = shown === "" ? `it returns status ${status}` : shown;
  return new ClickHouseError(
    hint === undefined ? `${doing}: ${words}` : `${doing}: ${hint} (${words})`,
    { code: number, said },
  );
}

export function isOfValue(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && valueCodes.has(error.code ?? 0);
}

export function hasException(text: string): boolean {
  return /(?:^|\n|__exception__)[\s\S]{0,32}Code: \d+[.,] [\s\S]*DB::Exception/.test(text);
}

function codeIn(text: string): number | undefined {
  const found = /Code: (\d+)[.,]/.exec(text)?.[1];
  return found === undefined ? undefined : Number(found);
}

function byStatus(status: number): string | undefined {
  if (status === 401 || status === 403) return "check user and password of the URL";
  if (status === 429 || status === 503) return "the server is overloaded: waiting";
  if (status >= 300 && status < 400)
    return "the server redirects to another URL: use that URL as the target";
  return undefined;
}

function plainText(text: string): string {
  return text
    .replace(/^[\s\S]*?Code: \d+[.,] (?:e\.displayText\(\) = )?DB::Exception: /, "")
    .replace(/,? e\.what\(\) = DB::Exception[\s\S]*$/, "")
    .replace(/\s*\(version [^)]*\)\s*$/, "")
    .trim();
}

interface ClickHouseAddress {
  readonly shown: string;
  readonly isTls: boolean;
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly ca: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly settings: Readonly<Record<string, string>>;
}

const defaultPorts = { "http:": 8_123, "https:": 8_443 } as const;
const reserved = ["query", "query_id", "user", "password", "database", "default_format", "role"];
const authority = "sslrootcert";
const explicitPort = /^[a-z]+:\/\/[^/?#]*?:(\d+)(?=[/?#]|$)/i;

/** Parses a URL. Throws a StoreError whose message contains neither the password nor the user. */
export function readAddress(text: string): ClickHouseAddress {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new StoreError(
      "cannot read ClickHouse's URL: it must have the form https://user:password@host:8443",
    );
  const settings: Record<string, string> = {};
  for (const [name, value] of url.searchParams) {
    if (name === authority) continue;
    if (reserved.includes(name) || !/^[a-z][a-z0-9_]*$/.test(name))
      throw new StoreError(
        `cannot read ClickHouse's URL: unknown parameter ${name}. Use user:password@host for the login, --database for the database, and ?${authority}=FILE for a CA certificate`,
      );
    settings[name] = value;
  }
  const afterUser = text.replace(/^([a-z]+:\/\/)[^/?#]*@/i, "$1");
  const port = Number(explicitPort.exec(afterUser)?.[1] ?? defaultPorts[url.protocol]);
  const [user, password] = [decode(url.username), decode(url.password)];
  const path = url.pathname.replace(/\/+$/, "");
  return {
    shown: `${url.protocol}//${url.hostname}:${port}${path}`,
    isTls: url.protocol === "https:",
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port,
    path: `${path}/`,
    ca: certificatesOf(url.searchParams.get(authority)),
    headers: {
      ...(user === "" ? {} : { "x-clickhouse-user": user }),
      ...(password === "" ? {} : { "x-clickhouse-key": password }),
    },
    settings,
  };
}

function certificatesOf(file: string | null): string | undefined {
  if (file === null) return undefined;
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new StoreError(
      `cannot read ${authority} of ClickHouse's URL: ${(error as Error).message}`,
    );
  }
}

function decode(text: string): string {
  let decoded: string;
  try {
    decoded = decodeURIComponent(text);
  } catch {
    throw new StoreError("cannot read ClickHouse's URL: a % in it is not followed by two digits");
  }
  if (!/^[\x21-\x7e]*$/.test(decoded))
    throw new StoreError(
      "cannot read ClickHouse's URL: user and password are sent as headers, so they must be visible ASCII",
    );
  return decoded;
}
