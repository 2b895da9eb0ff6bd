// An HTTP client for ClickHouse. A response with status 200 may also contain an exception.

import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { StoreError } from "../../../platform/base/store-error.ts";
import { whenUnanswered } from "../../../platform/base/unanswered.ts";
import type { ClickHouseAddress } from "./address.ts";
import { errorOf, hasException } from "./clickhouse-error.ts";

type Cell = string | number | null | readonly Cell[];
type ClickHouseRow = readonly Cell[];

interface RequestOptions {
  /** The server runs one query of an id at a time. */
  readonly queryId?: string;
  readonly settings?: Readonly<Record<string, string>>;
}

const answerMsMax = 120_000;
const answerBytesMax = 268_435_456;
/** The lowest level shrinks JSON to a fifth. Higher levels take many times as long. */
const gzipLevel = 1;

export class ClickHouseClient {
  readonly #address: ClickHouseAddress;
  readonly #agent: http.Agent;

  constructor(address: ClickHouseAddress) {
    this.#address = address;
    const options = { keepAlive: true, maxFreeSockets: 2 };
    this.#agent = address.isTls ? new https.Agent(options) : new http.Agent(options);
  }

  get shown(): string {
    return this.#address.shown;
  }

  /** Rejects with a ClickHouseError, or with a StoreError if there is no response. */
  async run(doing: string, sql: string, options: RequestOptions = {}): Promise<void> {
    this.#checkEmpty(doing, await this.#answer(doing, options, sql));
  }

  /** Returns the rows of a small SELECT. 64-bit numbers arrive as strings or as numbers. */
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

  /** Sends the chunks, compressed, as the body of an INSERT. */
  async insert(
    doing: string,
    { sql, chunks }: { readonly sql: string; readonly chunks: Iterable<Uint8Array> },
    options: RequestOptions = {},
  ): Promise<void> {
    const settings = { ...options.settings, query: sql };
    this.#checkEmpty(doing, await this.#answer(doing, { ...options, settings }, chunks));
  }

  /** Starts a request whose body and response the caller handles. */
  hold(sql: string, { queryId, settings = {} }: RequestOptions): ClientRequest {
    const request = this.#request({
      settings: {
        ...settings,
        query: sql,
        ...(queryId === undefined ? {} : { query_id: queryId }),
      },
      headers: {},
      agent: undefined,
    });
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
    const request = this.#request({
      settings: {
        ...{ ...settings, wait_end_of_query: "1" },
        ...(queryId === undefined ? {} : { query_id: queryId }),
      },
      headers: isText ? {} : { "content-encoding": "gzip" },
      agent: this.#agent,
    });
    request.setTimeout(answerMsMax, () =>
      request.destroy(new Error(`no response for ${answerMsMax / 1_000} s`)),
    );
    const answered = answerOf(request);
    // An early response explains an error better than the broken connection after it.
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
    // The server does not read the rest of a body that it rejects.
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

  #request({ settings, headers, agent }: RequestParts): ClientRequest {
    const { isTls, host, port, path, ca, headers: own, settings: given } = this.#address;
    const query = new URLSearchParams({ ...given, ...settings });
    const options: http.RequestOptions = {
      ...{ host, port, method: "POST", path: `${path}?${query}` },
      headers: { ...own, ...headers },
      ...(agent === undefined ? { agent: false } : { agent }),
    };
    const request = isTls
      ? https.request({ ...options, ...(ca === undefined ? {} : { ca }) })
      : http.request(options);
    // The first error reaches the caller through the response.
    return request.on("error", () => {});
  }

  #words(doing: string): string {
    return `${doing} ClickHouse at ${this.shown}`;
  }
}

interface RequestParts {
  readonly settings: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: http.Agent | undefined;
}

interface Answer {
  readonly status: number;
  readonly code: number | undefined;
  readonly text: string;
}

/** OpenSSL reports a plain-text response as a wrong TLS version. */
function faultOf({ message }: Error): string {
  return message.includes("wrong version number") ? "it does not use TLS: write http://" : message;
}

/** Rejects if the connection closes before the end of the response. */
export function answerOf(request: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    request.once("error", reject);
    whenUnanswered(request, reject);
    request.once("response", (response: IncomingMessage) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > answerBytesMax) request.destroy(new Error("the response is too long"));
        else chunks.push(chunk);
      });
      response.once("error", reject);
      response.once("close", () => {
        if (!response.complete)
          reject(new Error("the connection closed before the end of the response"));
      });
      response.once("end", () => {
        const code = Number(response.headers["x-clickhouse-exception-code"]);
        resolve({
          status: response.statusCode ?? 0,
          code: Number.isInteger(code) && code !== 0 ? code : undefined,
          text: Buffer.concat(chunks).toString("utf8"),
        });
      });
    });
  });
}
