import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished } from "vitest";
import { freePort } from "./free-port.ts";
import { findTestProgram } from "./test-program.ts";

const root = path.resolve(import.meta.dirname, "../..");

export const proxyNames = ["haproxy", "nginx"] as const;
type ProxyName = (typeof proxyNames)[number];

type Found = Record<ProxyName, Awaited<ReturnType<typeof findTestProgram>>>;

/**
 * Downloads the proxies if necessary. If a program is not available on this host, `why` is the
 * reason.
 */
export async function findProxies(): Promise<Found> {
  return {
    haproxy: await findTestProgram("haproxy"),
    nginx: await findTestProgram("nginx"),
  };
}

export async function startProxy(
  name: ProxyName,
  found: Found,
  gatewayPort: number,
): Promise<number> {
  return startConfigured(name, found, (port, folder) =>
    name === "haproxy"
      ? haproxyConfig(port, gatewayPort)
      : nginxConfig({ port, gatewayPort, folder }),
  );
}

export async function startConfigured(
  name: ProxyName,
  found: Found,
  configOf: (port: number, folder: string) => string,
): Promise<number> {
  const program = found[name];
  if ("why" in program) throw new Error(`start ${name}: ${program.why}`);
  const { libraries } = program;
  const port = await freePort();
  const folder = mkdtempSync(path.join(tmpdir(), `penstock-test-${name}-`));
  const configFile = path.join(folder, "proxy.conf");
  writeFileSync(configFile, configOf(port, folder));
  const args = name === "haproxy" ? ["-f", configFile, "-db"] : ["-c", configFile, "-p", folder];
  const env =
    libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
  const child = spawn(program.path, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  onTestFinished(async () => {
    const ended = new Promise((resolve) => child.once("close", resolve));
    if (child.exitCode === null && child.kill("SIGKILL")) await ended;
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  await expect
    .poll(() => accepts(port), { timeout: 30_000, message: `start ${name}: ${said}` })
    .toBe(true);
  expect([name, child.exitCode, said]).toEqual([name, null, expect.any(String)]);
  return port;
}

function haproxyConfig(port: number, gatewayPort: number): string {
  const shipped = readFileSync(path.join(root, "deploy/compose/haproxy.cfg"), "utf8");
  return (
    shipped
      // The file descriptor limit in the shipped configuration is the limit of the container.
      .replace("maxconn 20000", "maxconn 500")
      .replace("bind :8000", `bind 127.0.0.1:${port}`)
      .replace(/^resolvers names\n(?: .*\n)+/m, "")
      .replace(/^ {2}default-server check .*\n/m, "")
      .replace(/^ {2}option httpchk .*\n {2}http-check .*\n/m, "")
      .replace(
        /^ {2}server gateway-a .*\n {2}server gateway-b .*$/m,
        `  server gateway 127.0.0.1:${gatewayPort}`,
      )
  );
}

/**
 * Returns a configuration in which the proxy forwards bodies as they arrive. So the proxy and the
 * gateway may read a body differently.
 */
function nginxConfig({
  port,
  gatewayPort,
  folder,
}: {
  port: number;
  gatewayPort: number;
  folder: string;
}): string {
  return nginxMain(
    folder,
    `  upstream gateways { server 127.0.0.1:${gatewayPort}; keepalive 16; keepalive_timeout 8s; }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 20m;
    location / {
      proxy_pass http://gateways;
      proxy_http_version 1.1;
      proxy_request_buffering off;
      proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    }
  }`,
  );
}

export function nginxMain(folder: string, http: string): string {
  return `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
${http}
}
`;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
