// The live page on the admin port: `/`, one HTML page, and `/live`, server-sent events for it. This
// file judges who may see them; all that goes on while somebody watches is in watch.ts. Nothing
// here is reached from the public port.

import type { IncomingMessage, ServerResponse } from "node:http";
import { isOwnHost, isSameHost } from "./host.ts";
import { readPage } from "./page.ts";
import { createViewer } from "./viewer.ts";
import { Watch, type WatchOptions } from "./watch.ts";

interface LivePageOptions extends WatchOptions {
  /** The address or name that the admin port listens on. */
  readonly adminHost: string;
}

export interface LivePage {
  /** Answers the request. Returns false when its path is none of the page and not `/live`. */
  answer(request: IncomingMessage, response: ServerResponse): boolean;
  /** Ends all watching, and removes what it has made on the NATS server. */
  close(): Promise<void>;
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

export function createLivePage(options: LivePageOptions): LivePage {
  const files = readPage();
  const watch = new Watch(options);
  let closed = false;

  function answer(request: IncomingMessage, response: ServerResponse): boolean {
    const [path, query = ""] = (request.url ?? "").split("?", 2);
    const file = files.get(path ?? "");
    if (file === undefined && path !== "/live") return false;
    if (!isOwnHost(request.headers.host, options.adminHost))
      refuse(response, 403, foreignHost(request));
    else if (request.method !== "GET" && (file === undefined || request.method !== "HEAD")) {
      response.setHeader("Allow", file === undefined ? "GET" : "GET, HEAD");
      refuse(response, 405, "This is to be read");
    } else if (file !== undefined)
      response.writeHead(200, { ...always, ...file.headers }).end(file.body);
    else begin(request, response, new URLSearchParams(query).get("project") ?? "");
    return true;
  }

  function begin(request: IncomingMessage, response: ServerResponse, project: string): void {
    // Browsers send these headers by themselves, older ones only Origin. A page of another site
    // could not read the answer, but it could take all the places for viewers.
    const { host = "", origin, "sec-fetch-site": site = "same-origin" } = request.headers;
    const isForeign =
      (site !== "same-origin" && site !== "none") ||
      (origin !== undefined && !isSameHost(origin, host));
    if (isForeign) refuse(response, 403, "Not for pages elsewhere");
    else if (project !== "" && !projectPattern.test(project))
      refuse(response, 400, "There is no such project id");
    else if (closed || watch.viewers >= viewersMax)
      refuse(response, 503, `${viewersMax} watch already`);
    else {
      request.socket.setNoDelay(true);
      response.writeHead(200, { ...always, "Content-Type": "text/event-stream; charset=utf-8" });
      response.flushHeaders();
      const leave = watch.add(
        createViewer(response, options.monotonicMs),
        project === "" ? undefined : project,
      );
      response.once("close", leave);
    }
  }

  async function close(): Promise<void> {
    closed = true;
    await watch.close();
  }

  return { answer, close };
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, { ...always, "Content-Type": "text/plain; charset=utf-8" })
    .end(`${text}\n`);
}
