import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { parse } from "yaml";

interface Described {
  readonly headers?: Readonly<
    Record<string, { readonly required?: boolean; readonly schema: object }>
  >;
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
}

interface Operation {
  readonly responses: Readonly<Record<string, Described | Reference>>;
  readonly requestBody?: Described;
}

interface Reference {
  readonly $ref: string;
}

interface PathItem {
  readonly servers?: readonly { readonly url: string }[];
  readonly [method: string]: unknown;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly schemas: Record<string, Record<string, unknown>>;
    readonly responses: Readonly<Record<string, Described>>;
  };
}

export interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /**
   * True if the request has two Host headers. A proxy may use the second header, and then forward a
   * different request.
   */
  readonly isFramedBadly?: boolean;
}

export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export const methods = ["get", "head", "post", "put", "patch", "delete", "options"] as const;
const ADMIN_PORT = ":9464";

class ApiFile {
  readonly file: string;
  readonly api: OpenApi;
  readonly #ajv = new Ajv2020({ strict: false, validateFormats: false });
  readonly #checks = new Map<string, ValidateFunction>();

  /** `closed` lists the schemas whose objects must not have undocumented fields in the tests. */
  constructor(file: string, closed: readonly string[]) {
    this.file = file;
    // In the parsed file, an alias is the same object as its anchor.
    this.api = parse(readFileSync(file, "utf8"), { maxAliasCount: -1 }) as OpenApi;
    const held = structuredClone(this.api);
    for (const name of closed) {
      const schema = held.components.schemas[name];
      held.components.schemas[name] = { ...schema, unevaluatedProperties: false };
    }
    this.#ajv.addSchema(held, "api");
  }

  faultsOf(schema: object, value: unknown): unknown {
    const check = this.#checkOf(JSON.stringify(schema).replaceAll('"#/', '"api#/'));
    return check(value) ? [] : check.errors;
  }

  isA(name: string, value: unknown): boolean {
    return this.#checkOf(JSON.stringify({ $ref: `api#/components/schemas/${name}` }))(value);
  }

  #checkOf(schema: string): ValidateFunction {
    const known = this.#checks.get(schema);
    if (known !== undefined) return known;
    const check = this.#ajv.compile(JSON.parse(schema) as object);
    this.#checks.set(schema, check);
    return check;
  }

  resolved<T extends object>(described: T | Reference): T {
    if (!("$ref" in described)) return described;
    const target = described.$ref
      .slice(2)
      .split("/")
      .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], this.api);
    if (target === undefined) throw new Error(`${this.file}: there is no ${described.$ref}`);
    return target as T;
  }

  operationAt(template: string, method: string): Operation | undefined {
    return this.itemAt(template)[method] as Operation | undefined;
  }

  itemAt(template: string): PathItem {
    const found = this.api.paths[template];
    if (found === undefined) throw new Error(`${this.file} has no path ${template}`);
    return found;
  }
}

const gatewayApi = new ApiFile("docs/openapi.yaml", [
  "Stored",
  "Problem",
  "Note",
  "V1Results",
  "V1Problem",
  "Ready",
  "Unready",
]);
export const { api } = gatewayApi;
export const effectsApi = new ApiFile("docs/reference/openapi-effects.yaml", [
  "PersonAnswer",
  "PersonPage",
  "Links",
  "GroupAnswer",
  "GroupPage",
  "GroupTypes",
  "Usage",
  "SpikePage",
  "Status",
]);

export function faultsOf(schema: object, value: unknown): unknown {
  return gatewayApi.faultsOf(schema, value);
}

export function isA(name: string, value: unknown): boolean {
  return gatewayApi.isA(name, value);
}

/** Literal paths are checked before templates, and `/{other}` is checked last. */
function templateOf({ api }: ApiFile, path: string): string {
  const [plain = ""] = path.split("?", 1);
  if (Object.hasOwn(api.paths, plain)) return plain;
  const templates = Object.keys(api.paths).filter(
    (template) => template.includes("{") && template !== "/{other}",
  );
  const matching = templates.find((template) => {
    const pattern = template.replaceAll(/[.]/g, "\\.").replaceAll(/\{\w+\}/g, "[^/]+");
    return new RegExp(`^${pattern}$`).test(plain);
  });
  return matching ?? "/{other}";
}

export function isOnAdminPort(template: string): boolean {
  return gatewayApi.itemAt(template).servers?.some(({ url }) => url.endsWith(ADMIN_PORT)) ?? false;
}

export function isOnPublicPort(template: string): boolean {
  return gatewayApi.itemAt(template).servers?.some(({ url }) => !url.endsWith(ADMIN_PORT)) ?? true;
}

export function operationAt(template: string, method: string): Operation | undefined {
  return gatewayApi.operationAt(template, method);
}

/** Sends a request. If the response never ends, returns its first part. */
export function ask(
  url: string,
  { method = "GET", headers, body = "", isFramedBadly = false }: Asked,
): Promise<Answered> {
  const bytes = Buffer.from(body);
  const length =
    bytes.length > 0 || method === "POST" ? { "Content-Length": String(bytes.length) } : {};
  const lines = Object.entries({ Host: "127.0.0.1", ...length, ...headers });
  if (isFramedBadly) lines.push(["Host", "elsewhere"]);
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, headers: lines.flat(), agent: false }, (answer) => {
      let text = "";
      const done = (): void =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text });
      const isEndless = answer.headers["content-type"]?.startsWith("text/event-stream") ?? false;
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (!isEndless) return;
        done();
        sent.destroy();
      });
      answer.on("end", done);
    });
    sent.on("error", reject);
    sent.end(bytes);
  });
}

export class Observed {
  readonly #of: ApiFile;
  readonly #seen = new Map<object, Set<string>>();

  constructor(of: ApiFile = gatewayApi) {
    this.#of = of;
  }

  note(path: string, method: string, { status, headers, text }: Answered): void {
    const file = this.#of;
    const template = templateOf(file, path);
    const what = `${method} ${path}: ${status} ${text.slice(0, 300)}`;
    const operation = file.operationAt(template, method);
    const response = operation?.responses[status];
    if (operation === undefined || response === undefined)
      throw new Error(`${what}: is not in ${file.file}`);
    const described = file.resolved<Described>(response);
    const faults = [
      ...headerFaults(file, described, headers),
      ...bodyFaults(file, described, { headers, text }),
    ];
    if (faults.length > 0) throw new Error(`${what}: ${JSON.stringify(faults)}`);
    const seen = this.#seen.get(operation.responses) ?? new Set();
    this.#seen.set(operation.responses, seen.add(String(status)));
  }

  missing(): string[] {
    const all = Object.keys(this.#of.api.paths).flatMap((template) =>
      methods.map((method) => ({ template, method })),
    );
    return all.flatMap(({ template, method }) => {
      const { responses = {} } = this.#of.operationAt(template, method) ?? {};
      const missing = Object.keys(responses).filter(
        (status) => !this.#seen.get(responses)?.has(status),
      );
      return missing.map((status) => `${method} ${template} ${status}`);
    });
  }
}

function headerFaults(
  file: ApiFile,
  { headers = {} }: Described,
  given: IncomingHttpHeaders,
): unknown[] {
  return Object.entries(headers).flatMap(([name, { required = false, schema }]) => {
    const value = given[name.toLowerCase()];
    if (value === undefined) return required ? [`there is no ${name}`] : [];
    const isNumber = "type" in schema && schema.type === "integer";
    return file.faultsOf(schema, isNumber ? Number(value) : value) as unknown[];
  });
}

function bodyFaults(
  file: ApiFile,
  { content }: Described,
  { headers, text }: Pick<Answered, "headers" | "text">,
): unknown[] {
  if (content === undefined) return text === "" ? [] : ["there is a body"];
  const type = headers["content-type"] ?? "";
  const schema = content[type]?.schema;
  if (schema === undefined) return [`the content type is ${type}`];
  return file.faultsOf(schema, /json/.test(type) ? JSON.parse(text) : text) as unknown[];
}
