// The live page on the admin port: `/`, one HTML page, and `/live`, server-sent events for it. This
// file judges who may see them; all that goes on while somebody watches is in watch.ts. Nothing
// here is reached from the public port.

import type { IncomingMessage, ServerResponse } from "node:http";
import { isOwnHost, isSameHost } from "./host.ts";
import { readPage } from "./page.ts";
import { BrowserViewer } from "./viewer.ts";
import { Watch, type WatchOptions } from "./watch.ts";

interface LivePageOptions extends WatchOptions {
  /** The address or name that the admin port listens on. */
  readonly adminHost: string;
}

const viewersMax = 16;
const projectPattern = /^[A-Za-z0-9_-]{1,64}$/;
const always = {
  "Cache-Control": "no-store",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};
function foreignHost({ socket }: IncomingMessage): string {
  return `The live page is there by an address, as http://127.0.0.1:${socket.localPort}/, by localhost, or by the name in PENSTOCK_ADMIN_HOST, and not by other names: pages elsewhere could read it through one of their own.`;
}

export class LivePage {
  readonly #options: LivePageOptions;
  readonly #files = readPage();
  readonly #watch: Watch;
  #isClosed = false;

  constructor(options: LivePageOptions) {
    this.#options = options;
    this.#watch = new Watch(options);
  }

  /** Answers the request. Returns false when its path is none of the page and not `/live`. */
  answer(request: IncomingMessage, response: ServerResponse): boolean {
    const [path, query = ""] = (request.url ?? "").split("?", 2);
    const file = this.#files.get(path ?? "");
    if (file === undefined && path !== "/live") return false;
    if (!isOwnHost(request.headers.host, this.#options.adminHost))
      refuse(response, 403, foreignHost(request));
    else if (request.method !== "GET" && (file === undefined || request.method !== "HEAD")) {
      response.setHeader("Allow", file === undefined ? "GET" : "GET, HEAD");
      refuse(response, 405, "This is to be read");
    } else if (file !== undefined)
      response.writeHead(200, { ...always, ...file.headers }).end(file.body);
    else this.#begin(request, response, new URLSearchParams(query).get("project") ?? "");
    return true;
  }

  /** Ends all watching, and removes what it has made on the NATS server. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#watch.close();
  }

  #begin(request: IncomingMessage, response: ServerResponse, project: string): void {
    // Browsers send these headers by themselves, older ones only Origin. A page of another site
    // could not read the answer, but it could take all the places for viewers.
    const { host = "", origin, "sec-fetch-site": site = "same-origin" } = request.headers;
    const isForeign =
      (site !== "same-origin" && site !== "none") ||
      (origin !== undefined && !isSameHost(origin, host));
    if (isForeign) refuse(response, 403, "Not for pages elsewhere");
    else if (project !== "" && !projectPattern.test(project))
      refuse(response, 400, "There is no such project id");
    else if (this.#isClosed || this.#watch.viewers >= viewersMax)
      refuse(response, 503, `${viewersMax} watch already`);
    else {
      request.socket.setNoDelay(true);
      response.writeHead(200, { ...always, "Content-Type": "text/event-stream; charset=utf-8" });
      response.flushHeaders();
      const viewer = new BrowserViewer(response, this.#options.monotonicMs);
      response.once("close", this.#watch.add(viewer, project === "" ? undefined : project));
    }
  }
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, { ...always, "Content-Type": "text/plain; charset=utf-8" })
    .end(`${text}\n`);
}
