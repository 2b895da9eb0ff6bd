// Answers requests of SDKs and browsers at paths that accept no events: flags, configuration,
// scripts, recordings and logs. It stores nothing, reads no bodies, and does not depend on the
// store.

import { percentDecoded } from "../../platform/base/ascii.ts";
import type { Problem } from "../../platform/base/errors.ts";
import { errorsPage, favicon, frontPage, robots } from "./pages/pages.ts";
import { configJson, configScript, flagsJson } from "./pages/remote-config.ts";
import type { StaticFiles } from "./pages/static-files.ts";
import { type NearPaths, namedPath, type SdkRouteLabel } from "./paths.ts";
import { errorsPath, type FixedAnswer, JSON_TYPE, nosniff, SCRIPT_TYPE } from "./reply.ts";
import type { HttpRequest } from "./uws.ts";

interface SdkRoute {
  readonly label: SdkRouteLabel;
  readonly path: string;
  readonly allow: string;
  answerTo(request: HttpRequest): FixedAnswer | Problem;
}

export type SdkRouter = (path: string) => SdkRoute | undefined;

interface Entry {
  readonly label: SdkRouteLabel;
  readonly methods: readonly string[];
  readonly answer: (request: HttpRequest, nowMs: number) => FixedAnswer;
}

const read = ["get", "head"];
const readOrSent = ["get", "head", "post"];
const emptyPage = '{"count":0,"next":null,"previous":null,"results":[]}';

const noDefinitions = '{"flags":[],"group_type_mapping":{},"cohorts":{}}';

const entries: Readonly<Record<string, Entry>> = {
  "/flags": flags(false),
  "/decide": flags(true),
  "/flags/definitions": feature(noDefinitions),
  "/api/feature_flag/local_evaluation": feature(noDefinitions),
  "/api/feature_flag": feature(emptyPage),
  "/api/surveys": feature('{"surveys":[],"survey_config":null}'),
  "/api/early_access_features": feature('{"earlyAccessFeatures":[]}'),
  "/api/web_experiments": feature('{"experiments":[]}'),
  "/api/product_tours": feature('{"product_tours":[]}'),
  "/s": dropped("recordings", '{"status":"Ok"}'),
  "/i/v1/logs": dropped("logs", "{}"),
  "/i/v1/traces": dropped("logs", "{}"),
  "/i/v1/metrics": dropped("logs", "{}"),
  "/i/v0/ai/otel/v1/logs": dropped("logs", "{}"),
  "/i/v0/ai/otel/v1/metrics": dropped("logs", "{}"),
  "/report": dropped("logs", "{}"),
  "/": { label: "page", methods: read, answer: () => frontPage },
  [errorsPath]: { label: "page", methods: read, answer: () => errorsPage },
  "/robots.txt": { label: "page", methods: read, answer: () => robots },
  "/favicon.ico": { label: "page", methods: read, answer: () => favicon },
};

export const sdkPaths: readonly string[] = [
  ...Object.keys(entries),
  "/api/projects/{project}/feature_flags",
  "/api/projects/{project}/feature_flags/{flag}/remote_config",
  "/array/{key}/config",
  "/array/{key}/config.js",
  "/array/{key}/{script}",
  "/static/{script}",
  "/static/{version}/{script}",
];

const noPayload = feature("null");
const noFlags = feature(emptyPage);

const ofKey =
  /^\/array\/((?:[\w.~:@!$&'()*+,;=-]|%[\da-fA-F]{2}){1,200})\/(config|config\.js|[\w.-]{1,64}\.js)$/;
const isKey = /^[!-~]{1,200}$/;
/** SDKs read the body of every answer to this path, even of an error. */
const ofPayload = /^\/api\/projects\/[\w@.-]{1,64}\/feature_flags\/[^/]{1,1024}\/remote_config$/;
const ofFlags = /^\/api\/projects\/[\w@.-]{1,64}\/feature_flags$/;
const ofScript = /^\/static\/(?:\d{1,6}\.\d{1,6}\.\d{1,6}\/)?([\w.-]{1,64}\.js)$/;

interface SdkRouterOptions {
  readonly files: StaticFiles | undefined;
  readonly nearPaths: NearPaths;
  readonly wallMs: () => number;
}

export function createSdkRouter({ files, nearPaths, wallMs }: SdkRouterOptions): SdkRouter {
  const scripts = (files?.names ?? []).map((name) => `/static/${name}`);

  return (url) => {
    const path = url.length > 1 && url.endsWith("/") ? url.slice(0, -1) : url;
    const entry = Object.hasOwn(entries, path) ? entries[path] : undefined;
    if (entry !== undefined) return routed(entry, url);
    if (ofPayload.test(path)) return routed(noPayload, namedPath(url));
    if (ofFlags.test(path)) return routed(noFlags, namedPath(url));
    const [, segment, asked] = ofKey.exec(path) ?? [];
    const key = segment === undefined ? undefined : keyIn(segment);
    if (key !== undefined && asked === "config")
      return routed(configAs(JSON_TYPE, configJson(key)), namedPath(url));
    if (key !== undefined && asked === "config.js")
      return routed(configAs(SCRIPT_TYPE, configScript(key)), namedPath(url));
    const script = key === undefined ? ofScript.exec(path)?.[1] : asked;
    return script === undefined ? undefined : scriptAt(namedPath(url), script);
  };

  function routed({ label, methods, answer }: Entry, path: string): SdkRoute {
    const answerTo = (request: HttpRequest) =>
      ifTaken(request, methods, () => answer(request, wallMs()));
    return { label, path, allow: allowOf(methods), answerTo };
  }

  function scriptAt(path: string, name: string): SdkRoute {
    const answerTo = (request: HttpRequest) => {
      const answer = files?.answer(name, {
        ifNoneMatch: request.getHeader("if-none-match"),
        acceptEncoding: request.getHeader("accept-encoding"),
      });
      return answer === undefined ? noScript(path, name) : ifTaken(request, read, () => answer);
    };
    return { label: "static", path, allow: allowOf(read), answerTo };
  }

  function noScript(path: string, name: string): Problem {
    const near = nearPaths.find(`/static/${name}`, scripts);
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    return {
      code: "not_found",
      detail: `There is nothing at ${path}: ${whyNoScript(files)}${meant}`,
    };
  }
}

function ifTaken(
  request: HttpRequest,
  methods: readonly string[],
  answer: () => FixedAnswer,
): FixedAnswer | Problem {
  if (methods.includes(request.getMethod())) return answer();
  const allow = allowOf(methods);
  const instead = request.getMethod() === "post" ? ": events go to /capture/ or /batch/" : "";
  return { code: "method_not_allowed", detail: `This path takes ${allow}${instead}`, allow };
}

function allowOf(methods: readonly string[]): string {
  return [...methods, "options"].join(", ").toUpperCase();
}

function keyIn(segment: string): string | undefined {
  const key = percentDecoded(segment);
  return isKey.test(key) ? key : undefined;
}

function feature(body: string): Entry {
  const answer = json(body);
  return { label: "features", methods: readOrSent, answer: () => answer };
}

function dropped(label: SdkRouteLabel, body: string): Entry {
  const answer = json(body);
  const silent: FixedAnswer = { status: 204, headers: [], body: "" };
  return {
    label,
    methods: readOrSent,
    answer: (request) => (request.getQuery("beacon") === "1" ? silent : answer),
  };
}

function json(body: string): FixedAnswer {
  return {
    status: 200,
    headers: [["Content-Type", JSON_TYPE], nosniff, ["Cache-Control", "no-store"]],
    body: `${body}\n`,
  };
}

function flags(isDecide: boolean): Entry {
  const answer = (request: HttpRequest, nowMs: number): FixedAnswer => {
    const version = Number.parseInt(request.getQuery("v") ?? "", 10);
    const withConfig = request.getQuery("config") === "true";
    return json(flagsJson({ version: version > 0 ? version : 1, withConfig, isDecide }, nowMs));
  };
  return { label: "flags", methods: readOrSent, answer };
}

function configAs(type: string, body: string): Entry {
  const answer: FixedAnswer = {
    status: 200,
    headers: [
      ["Content-Type", type],
      nosniff,
      ["Cache-Control", "public, max-age=300"],
      ["Cross-Origin-Resource-Policy", "cross-origin"],
    ],
    body,
  };
  return { label: "config", methods: read, answer: () => answer };
}

function whyNoScript(files: StaticFiles | undefined): string {
  return files === undefined
    ? "this gateway does not serve the SDK's scripts: set PENSTOCK_POSTHOG_JS to the folder of the npm package posthog-js, and restart it"
    : `posthog-js ${files.version}, which is served here, has no such script`;
}
