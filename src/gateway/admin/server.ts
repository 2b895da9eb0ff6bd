// The admin port serves metrics, health checks and the live page. Health checks need no token,
// because the probes of orchestrators send none. A request without a token gets only the status.

import type { IncomingMessage, ServerResponse } from "node:http";
import { HttpPort, type PortSetting } from "../../platform/base/http-port.ts";
import type { Log } from "../../platform/base/log.ts";
import { type PortAccess, refuseAccess } from "../../platform/base/port-access.ts";
import type { WorkersReadiness } from "../workers/supervisor.ts";

const READINESS_CACHED_MS = 500;
/** The limit is low, so that the public port always has enough file descriptors. */
const CONNECTIONS_MAX = 128;
const READINESS_TIMEOUT_MS = 1_500;

interface AdminServerOptions {
  readonly access: PortAccess;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  /** Returns the reasons why the gateway cannot store events now. Without reasons, it is ready. */
  readonly readiness: () => Promise<readonly string[] | WorkersReadiness>;
  readonly warnings?: () => Promise<readonly string[]>;
  readonly live?: (request: IncomingMessage, response: ServerResponse) => boolean;
  readonly instance?: object;
  readonly publicPort?: () => number | undefined;
  readonly log: Pick<Log, "error">;
  readonly monotonicMs: () => number;
  readonly setting?: PortSetting;
}

interface Answer {
  readonly status: 200 | 503;
  readonly contentType: string;
  readonly body: string;
}

interface Page {
  readonly isOpen: boolean;
  answer(withDetails: boolean): Promise<Answer>;
}

export class AdminServer {
  readonly #options: AdminServerOptions;
  readonly #port: HttpPort;
  readonly #pages: Readonly<Record<string, Page>> = {
    "/metrics": { isOpen: false, answer: () => this.#scrape() },
    "/livez": { isOpen: true, answer: async (withDetails) => this.#alive(withDetails) },
    "/readyz": { isOpen: true, answer: (withDetails) => this.#ready(withDetails) },
  };
  #readiness: ReadinessCheck;

  constructor(options: AdminServerOptions) {
    this.#options = options;
    this.#readiness = new ReadinessCheck(options);
    this.#port = new HttpPort({
      answer: (request, response) => void this.#answer(request, response),
      connectionsMax: CONNECTIONS_MAX,
      purpose: "metrics and health",
      setting: options.setting ?? "adminPort",
    });
  }

  listen(host: string, port: number): Promise<number> {
    return this.#port.listen(host, port);
  }

  readinessChanged(): void {
    this.#readiness = new ReadinessCheck(this.#options);
  }

  close(): Promise<void> {
    return this.#port.close();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { access, live, publicPort, log } = this.#options;
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const page = Object.hasOwn(this.#pages, path) ? this.#pages[path] : undefined;
    if (page === undefined) {
      if (live?.(request, response)) return;
      response
        .writeHead(404, { "Content-Type": "text/plain; charset=utf-8" })
        .end(nothingHere(publicPort?.()));
      return;
    }
    const isRead = request.method === "GET" || request.method === "HEAD";
    const refusal = access.problemOf(request, isRead ? "read" : "admin");
    if (refusal !== undefined && !page.isOpen) refuseAccess(response, refusal);
    else if (!isRead) response.writeHead(405, { Allow: "GET, HEAD" }).end();
    else {
      try {
        const { status, contentType, body } = await page.answer(refusal === undefined);
        response
          .writeHead(status, { "Content-Type": contentType, "Cache-Control": "no-store" })
          .end(body);
      } catch (error) {
        log.error({ err: error, path }, "admin port: answering a request failed");
        response.writeHead(503).end();
      }
    }
  }

  #alive(withDetails: boolean): Answer {
    if (!withDetails) return json(200, { status: "alive" });
    const { instance, publicPort } = this.#options;
    const port = publicPort?.();
    return json(200, {
      status: "alive",
      ...(instance === undefined ? {} : { instance }),
      ...(port === undefined ? {} : { public_port: port }),
    });
  }

  async #scrape(): Promise<Answer> {
    const { metrics } = this.#options;
    return { status: 200, contentType: metrics.contentType, body: await metrics.text() };
  }

  async #ready(withDetails: boolean): Promise<Answer> {
    const check = this.#readiness;
    const [found, reported = []] = await Promise.all([check.found(), this.#options.warnings?.()]);
    if (check !== this.#readiness) return this.#ready(withDetails);
    if (!withDetails) return statusOf(found);
    const warnings = reported.length === 0 ? {} : { warnings: reported };
    if ("ready" in found) return ofWorkers(found, warnings);
    return found.length === 0
      ? json(200, { status: "ready", ...warnings })
      : json(503, { status: "unready", reasons: found, ...warnings });
  }
}

function nothingHere(publicPort: number | undefined): string {
  const port = publicPort === undefined ? "the public port" : `port ${publicPort}`;
  return `Path not found: this is the admin port. Events go to ${port}.\n`;
}

function statusOf(found: Found): Answer {
  const isReady = "ready" in found ? found.ready > 0 : found.length === 0;
  return isReady ? json(200, { status: "ready" }) : json(503, { status: "unready" });
}

function ofWorkers({ ready, workers, reasons }: WorkersReadiness, warnings: object): Answer {
  const found = { workers, workers_ready: ready, reasons, ...warnings };
  return ready > 0
    ? json(200, { status: "ready", ...found })
    : json(503, { status: "unready", ...found });
}

function json(status: 200 | 503, value: object): Answer {
  return { status, contentType: "application/json", body: `${JSON.stringify(value)}\n` };
}

type Found = readonly string[] | WorkersReadiness;

class ReadinessCheck {
  readonly #options: AdminServerOptions;
  #checked: Promise<Found> | undefined;
  #staleMonotonicMs = 0;

  constructor(options: AdminServerOptions) {
    this.#options = options;
  }

  found(): Promise<Found> {
    const { monotonicMs } = this.#options;
    if (this.#checked === undefined || monotonicMs() > this.#staleMonotonicMs) {
      this.#staleMonotonicMs = Number.POSITIVE_INFINITY;
      this.#checked = this.#check().finally(() => {
        this.#staleMonotonicMs = monotonicMs() + READINESS_CACHED_MS;
      });
    }
    return this.#checked;
  }

  async #check(): Promise<Found> {
    const { readiness, log } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<Found>((resolve) => {
      timer = setTimeout(
        () => resolve([`The check took longer than ${READINESS_TIMEOUT_MS} ms`]),
        READINESS_TIMEOUT_MS,
      );
    });
    try {
      return await Promise.race([readiness(), late]);
    } catch (error) {
      log.error({ err: error }, "readiness check failed");
      return ["The check failed"];
    } finally {
      clearTimeout(timer);
    }
  }
}
