// The live page on the admin port. `/` is an HTML page, `/live` its server-sent events,
// `/live/person` a person, and `/live/rejected` the newest rejected events. This file checks access.
// watch.ts does the work for open pages.

import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { NatsConnection } from "@nats-io/nats-core";
import { isProjectId } from "../platform/base/forms.ts";
import { isForeign, isOwnHost } from "../platform/base/own-host.ts";
import { type PortAccess, refuseAccess } from "../platform/base/port-access.ts";
import { effectsPerson } from "./effects-port.ts";
import { BrowserViewer, type LiveFilter } from "./feed.ts";
import { newestRejected, type RejectedFilter } from "./rejected.ts";
import { Watch, type WatchOptions } from "./watch.ts";

interface LivePageOptions extends WatchOptions {
  readonly adminHost: string;
  readonly access: PortAccess;
  /** Returns the streams with rejected events of a project, or of all projects. */
  readonly rejectedStreams: (project: string | undefined) => readonly string[];
}

interface Asked {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
}

const viewersMax = 16;
const personsAtOnceMax = 16;
const rejectedAtOnceMax = 4;
const distinctIdCharsMax = 1_000;
const filterCharsMax = 1_000;
const streamPath = "/live";
const personPath = "/live/person";
const rejectedPath = "/live/rejected";
const paths: readonly string[] = [streamPath, personPath, rejectedPath];
const noEffects = "The effects process does not respond";
const always = {
  "Cache-Control": "no-store",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};
function foreignHost({ socket }: IncomingMessage): string {
  return `Open the live page by an IP address, such as http://127.0.0.1:${socket.localPort}/, by localhost, or by the name in PENSTOCK_ADMIN_HOST. Other names are rejected, because pages of other sites could read this page through them.`;
}

export class LivePage {
  readonly #options: LivePageOptions;
  readonly #files = readPage();
  readonly #watch: Watch;
  #isClosed = false;
  #personsAsked = 0;
  #rejectedAsked = 0;

  constructor(options: LivePageOptions) {
    this.#options = options;
    this.#watch = new Watch(options);
  }

  /** Answers a request. Returns false if its path does not belong to the live page. */
  answer(request: IncomingMessage, response: ServerResponse): boolean {
    const [path, query = ""] = (request.url ?? "").split("?", 2);
    const file = this.#files.get(path ?? "");
    if (file === undefined && !paths.includes(path ?? "")) return false;
    const { adminHost, access, showsEvents } = this.#options;
    if (!isOwnHost(request.headers.host, adminHost)) refuse(response, 403, foreignHost(request));
    else if (request.method !== "GET" && (file === undefined || request.method !== "HEAD")) {
      response.setHeader("Allow", file === undefined ? "GET" : "GET, HEAD");
      refuse(response, 405, "Only GET and HEAD are allowed");
    } else if (file !== undefined)
      response.writeHead(200, { ...always, ...file.headers }).end(file.body);
    else if (isForeign(request)) refuse(response, 403, "Cross-site requests are not allowed");
    else {
      const refusal = access.problemOf(request, showsEvents ? "admin" : "read");
      if (refusal !== undefined) refuseAccess(response, refusal);
      else this.#answerQuery(path, { request, response, query: new URLSearchParams(query) });
    }
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watch.close();
  }

  #answerQuery(path: string | undefined, { request, response, query }: Asked): void {
    const [project, event, distinctId] = ["project", "event", "distinct_id"].map(
      (name) => query.get(name) ?? "",
    ) as [string, string, string];
    const isOfPerson = path === personPath;
    if ((isOfPerson || project !== "") && !isProjectId(project))
      refuse(response, 400, `Invalid project id: ${JSON.stringify(project.slice(0, 100))}`);
    else if (isOfPerson) void this.#showPerson(response, project, distinctId);
    else if (path === rejectedPath)
      void this.#showRejected(response, {
        project: project || undefined,
        event: event || undefined,
      });
    else if (event.length > filterCharsMax || distinctId.length > filterCharsMax)
      refuse(response, 400, `A filter must have at most ${filterCharsMax} characters`);
    else
      this.#begin(request, response, {
        project: project || undefined,
        event: event || undefined,
        distinctId: distinctId || undefined,
      });
  }

  /** Sends the newest rejected events as JSON, under the same conditions as events. */
  async #showRejected(response: ServerResponse, filter: RejectedFilter): Promise<void> {
    const { showsEvents, rejectedStreams, connect } = this.#options;
    if (!showsEvents)
      refuse(response, 403, "Events and people are hidden: see PENSTOCK_LIVE_EVENTS");
    else if (this.#rejectedAsked >= rejectedAtOnceMax)
      refuse(response, 503, `The maximum of ${rejectedAtOnceMax} concurrent lookups is reached`);
    else {
      this.#rejectedAsked += 1;
      let connection: NatsConnection | undefined;
      try {
        // Its own connection. That of the viewers ends when the page opens again with a filter.
        connection = await connect();
        const items = await newestRejected(connection, rejectedStreams(filter.project), filter);
        const json = { ...always, "Content-Type": "application/json" };
        response.writeHead(200, json).end(JSON.stringify(items));
      } catch {
        refuse(response, 503, "The rejected events cannot be read: NATS does not respond");
      } finally {
        this.#rejectedAsked -= 1;
        connection?.close().catch(() => {});
      }
    }
  }

  #begin(request: IncomingMessage, response: ServerResponse, filter: LiveFilter): void {
    if (this.#isClosed || this.#watch.viewers >= viewersMax)
      refuse(response, 503, `The maximum of ${viewersMax} viewers is reached`);
    else {
      request.socket.setNoDelay(true);
      response.writeHead(200, { ...always, "Content-Type": "text/event-stream; charset=utf-8" });
      response.flushHeaders();
      const viewer = new BrowserViewer(response, this.#options.monotonicMs);
      response.once("close", this.#watch.add(viewer, filter));
    }
  }

  /** Returns a person. The same access rules apply as for events. Never rejects. */
  async #showPerson(response: ServerResponse, project: string, distinctId: string): Promise<void> {
    const { showsEvents, effectsUrl, signEffects } = this.#options;
    const url = effectsUrl?.();
    if (!showsEvents)
      refuse(response, 403, "Events and people are hidden: see PENSTOCK_LIVE_EVENTS");
    else if (distinctId === "" || distinctId.length > distinctIdCharsMax)
      refuse(response, 400, "Invalid project id or distinct id");
    else if (url === undefined) refuse(response, 503, noEffects);
    else if (this.#personsAsked >= personsAtOnceMax)
      refuse(response, 503, `The maximum of ${personsAtOnceMax} concurrent lookups is reached`);
    else {
      const gone = new AbortController();
      response.once("close", () => gone.abort());
      this.#personsAsked += 1;
      try {
        const person = await effectsPerson(
          { url, sign: signEffects },
          { project, distinctId },
          gone.signal,
        );
        if (person === undefined) refuse(response, 404, "This id has no person yet");
        else response.writeHead(200, { ...always, "Content-Type": "application/json" }).end(person);
      } catch {
        refuse(response, 503, noEffects);
      } finally {
        this.#personsAsked -= 1;
      }
    }
  }
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, { ...always, "Content-Type": "text/plain; charset=utf-8" })
    .end(`${text}\n`);
}

interface PageFile {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const headersOfPage = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": policy,
  "Cross-Origin-Opener-Policy": "same-origin",
  "X-Frame-Options": "DENY",
};

const pageFiles = [
  "page.css",
  "page.js",
  "state.js",
  "effects.js",
  "rejected.js",
  "json-text.js",
  "text.js",
  "source.js",
];

function readPage(): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>([
    ["/", { body: read("page.html"), headers: headersOfPage }],
  ]);
  for (const name of pageFiles) {
    const type = name.endsWith(".css") ? "text/css" : "text/javascript";
    const headers = { "Content-Type": `${type}; charset=utf-8` };
    files.set(`/page/${name}`, { body: read(name), headers });
  }
  return files;
}

function read(name: string): string {
  return readFileSync(new URL(`./page/${name}`, import.meta.url), "utf8");
}
