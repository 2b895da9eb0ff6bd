// Finds the handler for a path. Events go to the intake, an SDK request gets an answer, some paths
// go to the upstream, and an unknown path gets an error.

import type { Problem } from "../../platform/base/errors.ts";
import {
  type PassedKind,
  passedKindOf,
  passedQuery,
  plainlySpelt,
} from "../upstream/passed-head.ts";
import type { StaticFiles } from "./pages/static-files.ts";
import {
  type ConversionKind,
  conversionAt,
  endpoints,
  NearPaths,
  namedPath,
  type RouteLabel,
  withOneSlash,
} from "./paths.ts";
import { allowedMethods, type FixedAnswer, methodsAt } from "./reply.ts";
import { createSdkRouter, type SdkRouter } from "./sdk-requests.ts";
import type { HttpRequest, HttpResponse, TemplatedApp } from "./uws.ts";

export interface Routed {
  readonly label: RouteLabel;
  readonly path: string;
  /** The answer to a request whose body is discarded. It is sent when the body has arrived. */
  readonly verdict?: Problem | FixedAnswer;
  readonly conversion?: ConversionKind | undefined;
  readonly isGet?: boolean;
  readonly headOnly?: boolean;
}

export interface Passed extends Routed {
  readonly label: PassedKind;
  readonly passedPath: string;
  readonly passedQuery: string;
  readonly own: FixedAnswer | undefined;
}

export interface RoutedPreflight extends Routed {
  readonly allow: string;
}

interface RouterOptions {
  readonly files: StaticFiles | undefined;
  readonly wallMs: () => number;
  begin(response: HttpResponse, request: HttpRequest, routed: Routed): void;
  preflight(response: HttpResponse, request: HttpRequest, routed: RoutedPreflight): void;
  readonly pass:
    | ((response: HttpResponse, request: HttpRequest, passed: Passed) => void)
    | undefined;
}

const eventRequests: ReadonlyMap<string, Routed> = new Map(
  endpoints.map(([path, label]) => [path, { label, path, conversion: conversionAt(path) }]),
);
const eventPaths = [...eventRequests.keys()];
const tracePath = /^\/v1\/traces\/?$/;
const operatorPaths: ReadonlySet<string> = new Set([
  "/metrics",
  "/livez",
  "/readyz",
  "/healthz",
  "/health",
]);
/**
 * At these paths, the gateway sends its own answer if the upstream fails, because a page without
 * its script would send no events.
 */
const hasOwnAnswer = /^\/(?:array|static)\/.*\.js$|\/remote_config\/?$/;
const passedMethods = "GET, HEAD, POST, OPTIONS";
const METHOD_NOT_ALLOWED: Problem = { code: "method_not_allowed", detail: "Send events with POST" };

export class Router {
  readonly #options: RouterOptions;
  readonly #sdkRouteOf: SdkRouter;
  readonly #nearPaths = new NearPaths();

  constructor(options: RouterOptions) {
    const { files, wallMs } = options;
    this.#options = options;
    this.#sdkRouteOf = createSdkRouter({ files, nearPaths: this.#nearPaths, wallMs });
  }

  prepare(app: TemplatedApp): void {
    const { begin } = this.#options;
    for (const posted of eventRequests.values()) {
      app.post(posted.path, (response, request) => begin(response, request, posted));
      app.any(posted.path, (response, request) => this.#takeAt(response, request, posted));
    }
    app.any("/*", (response, request) => this.#elsewhere(response, request));
  }

  #elsewhere(response: HttpResponse, request: HttpRequest): void {
    const url = withOneSlash(request.getUrl());
    const posted = eventRequests.get(url);
    if (posted !== undefined) {
      this.#takeAt(response, request, posted);
      return;
    }
    const { begin, preflight } = this.#options;
    if (this.#isPassed(response, request, url)) return;
    const found = this.#sdkRouteOf(url);
    const nowhere = { label: "other", path: namedPath(url), allow: allowedMethods } as const;
    if (request.getMethod() === "options") {
      preflight(response, request, found ?? nowhere);
      return;
    }
    const headOnly = request.getMethod() === "head";
    if (found === undefined) {
      const path = namedPath(request.getUrl());
      const verdict = this.#nothingAt(path, request.getUrl());
      begin(response, request, { label: "other", path, verdict, headOnly });
    } else {
      const { label, path } = found;
      begin(response, request, { label, path, verdict: found.answerTo(request), headOnly });
    }
  }

  #isPassed(response: HttpResponse, request: HttpRequest, url: string): boolean {
    const { pass, preflight } = this.#options;
    const label = pass === undefined ? undefined : passedKindOf(url);
    if (pass === undefined || label === undefined) return false;
    const method = request.getMethod();
    const path = namedPath(url);
    if (method === "options") {
      preflight(response, request, { label, path, allow: passedMethods });
      return true;
    }
    const query = passedQuery(request.getQuery() ?? "");
    if (!["get", "head", "post"].includes(method) || query === undefined) return false;
    const headOnly = method === "head";
    const here = hasOwnAnswer.test(url) ? this.#sdkRouteOf(url)?.answerTo(request) : undefined;
    const own = here !== undefined && "body" in here ? here : undefined;
    const goesOn = { passedPath: plainlySpelt(url), passedQuery: query };
    pass(response, request, { label, path, ...goesOn, own, headOnly });
    return true;
  }

  #takeAt(response: HttpResponse, request: HttpRequest, posted: Routed): void {
    const { begin, preflight } = this.#options;
    const { label, path, conversion } = posted;
    const isPostAlone = label === "v1" || conversion !== undefined;
    const allow = methodsAt(isPostAlone);
    const method = request.getCaseSensitiveMethod();
    if (method === "OPTIONS") preflight(response, request, { label, path, allow });
    else if (method === "POST") begin(response, request, posted);
    else if (method === "GET" && !isPostAlone)
      begin(response, request, { label, path, isGet: true });
    else {
      const verdict = { ...METHOD_NOT_ALLOWED, allow };
      begin(response, request, { label, path, verdict, headOnly: method === "HEAD" });
    }
  }

  #nothingAt(named: string, path: string): Problem {
    if (operatorPaths.has(path)) {
      const detail = `There is nothing at ${named} on this port: metrics and health are on the admin port, PENSTOCK_ADMIN_PORT`;
      return { code: "not_found", detail };
    }
    const near = tracePath.test(path) ? "/i/v0/ai/otel" : this.#nearPaths.find(path, eventPaths);
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    return {
      code: "not_found",
      detail: `There is nothing at ${named}: events go to /capture/ or /batch/${meant}`,
    };
  }
}
