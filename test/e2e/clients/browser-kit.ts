// A real Chromium, and a site of another origin whose pages contain a client. Captured events are
// stored in localStorage, which survives leaving the page. Any problem that the browser reports
// fails the test.

import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, vi } from "vitest";
import { startBrowser } from "../../kit/browser.ts";
import { startTestGateway, type TestGateway } from "../../kit/gateway.ts";
import type { Captured } from "./stored-kit.ts";

const modules = path.resolve(import.meta.dirname, "../../../node_modules");

export const readyMsMax = 10_000;

export function chromiums(): string[] {
  const named = process.env["PENSTOCK_TEST_CHROMIUM"] ?? "";
  if (named === "") {
    process.stderr.write(
      "NOT RUN: what clients do in a browser: no Chromium on PATH, none in PENSTOCK_TEST_CHROMIUM\n",
    );
  }
  return named === "" ? [] : [named];
}

interface Stage {
  readonly gateway: TestGateway;
  readonly site: Site;
  readonly browser: Browser | undefined;
}

export function startStage(env: () => Record<string, string> = () => ({})): Stage {
  let gateway: TestGateway | undefined;
  let site: Site | undefined;
  let browser: Browser | undefined;
  beforeAll(async () => {
    if (chromiums().length > 0) browser = await startBrowser();
    gateway = await startTestGateway({ env: env() });
    site = await startSite();
  });
  afterAll(async () => {
    await browser?.close();
    await site?.close();
    await gateway?.stop();
  });
  return {
    get gateway() {
      return gateway!;
    },
    get site() {
      return site!;
    },
    get browser() {
      return browser;
    },
  };
}

export interface Site {
  readonly origin: string;
  readonly pages: Map<string, string>;
  close(): Promise<void>;
}

async function startSite(): Promise<Site> {
  const pages = new Map<string, string>();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://site");
    const body = pages.get(pathname);
    if (body !== undefined) {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      response.end(documentOf(body));
      return;
    }
    const file = path.join(modules, path.posix.normalize(pathname).replace(/^\/modules\//, ""));
    response.setHeader("Content-Type", "text/javascript; charset=utf-8");
    createReadStream(file)
      .on("error", () => response.writeHead(404).end())
      .pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    pages,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

// Without an icon, the browser would request one from the site.
function documentOf(body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title><link rel="icon" href="data:,"></head>
<body><h1>Shop</h1><button id="buy" class="primary" data-plan="pro">Buy now</button>
<script>
window.note = (event) => {
  const noted = JSON.parse(localStorage.getItem("noted") ?? "[]");
  localStorage.setItem("noted", JSON.stringify([...noted, event]));
};
</script>
${body}
</body></html>`;
}

export interface Heard {
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

export interface Visit {
  readonly page: Page;
  readonly heard: Heard[];
  captured(): Promise<Captured[]>;
  idle(): Promise<void>;
}

interface VisitOptions {
  readonly expected?: RegExp;
  readonly context?: BrowserContext;
}

/**
 * Chromium aborts loads when a network interface appears or disappears, for example during a fault
 * scenario.
 */
const networkChanged = /ERR_NETWORK_CHANGED/;
const isOfNetwork = (complaint: string): boolean => networkChanged.test(complaint);
const loadsMax = 5;

export async function visit(
  browser: Browser,
  url: string,
  options: VisitOptions = {},
): Promise<Visit> {
  const context = options.context ?? (await browser.newContext());
  const page = await context.newPage();
  const complaints: string[] = [];
  const heard: Heard[] = [];
  context.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  context.on("weberror", (error) => complaints.push(String(error.error())));
  const pending = new Set<Request>();
  context.on("request", (request) => pending.add(request));
  context.on("requestfinished", (request) => pending.delete(request));
  const urls = (): string[] => [...pending].map((request) => request.url());
  const idle = async (): Promise<void> => {
    await vi.waitFor(() => expect(urls()).toEqual([]), readyMsMax);
  };
  // A request that was answered but whose body the client did not read also counts as failed.
  const answered = new Set<Request>();
  context.on("requestfailed", (request) => {
    pending.delete(request);
    if (!answered.has(request))
      complaints.push(`${request.url()}: ${request.failure()?.errorText}`);
  });
  context.on("response", (response) => {
    answered.add(response.request());
    const { origin, pathname } = new URL(response.url());
    if (origin === new URL(url).origin) return;
    const method = response.request().method();
    heard.push({ method, path: pathname, status: response.status() });
    if (response.status() >= 400) complaints.push(`${method} ${pathname}: ${response.status()}`);
  });
  onTestFinished(async () => {
    const isExpected = (complaint: string): boolean =>
      networkChanged.test(complaint) || options.expected?.test(complaint) === true;
    try {
      await idle();
      expect(complaints.filter((complaint) => !isExpected(complaint))).toEqual([]);
    } finally {
      await context.close();
    }
  });
  await page.goto(url);
  for (let tries = 1; tries < loadsMax && complaints.some(isOfNetwork); tries++) {
    complaints.length = 0;
    heard.length = 0;
    await page.goto(url);
  }
  return {
    page,
    heard,
    idle,
    captured: async () =>
      JSON.parse(await page.evaluate('localStorage.getItem("noted") ?? "[]"')) as Captured[],
  };
}
