// The only importer of uWebSockets.js, so that a different build of it is swapped in only here and
// in package.json. Also declares functions of the library that its own declarations omit. Contains
// no rules of ours.

import type { TemplatedApp, us_listen_socket } from "uWebSockets.js";

export type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from "uWebSockets.js";
export { App, SSLApp, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";

/**
 * uWS's LIBUS_LISTEN_EXCLUSIVE_PORT. Without it SO_REUSEPORT shares the port with any other process
 * that has it open.
 */
const EXCLUSIVE_PORT = 1;
const SHARED_PORT = 0;

interface ListenWithHostAndOptions {
  listen(
    host: string,
    port: number,
    options: number,
    callback: (socket: us_listen_socket | false) => void,
  ): unknown;
}

/**
 * Listens on a port that no other process has. Undefined if that fails: uWS does not report why.
 */
export function listenExclusively(
  app: TemplatedApp,
  host: string,
  port: number,
): us_listen_socket | undefined {
  return listenAs(app, { host, port, options: EXCLUSIVE_PORT });
}

/**
 * Listens on a port together with other processes of the same user that share it too; the kernel
 * spreads the connections. Not for port 0, which uWS never shares. Undefined if that fails.
 */
export function listenShared(
  app: TemplatedApp,
  host: string,
  port: number,
): us_listen_socket | undefined {
  return listenAs(app, { host, port, options: SHARED_PORT });
}

function listenAs(
  app: TemplatedApp,
  { host, port, options }: { host: string; port: number; options: number },
): us_listen_socket | undefined {
  let listening: us_listen_socket | undefined;
  // `listen` calls this before it returns.
  (app as unknown as ListenWithHostAndOptions).listen(host, port, options, (socket) => {
    if (socket !== false) listening = socket;
  });
  return listening;
}

interface ParentApp {
  getDescriptor(): unknown;
  addChildAppDescriptor(descriptor: unknown): void;
  removeChildAppDescriptor(descriptor: unknown): void;
}

/**
 * Makes `acceptor` pass the connections that it accepts from now on to its apps in turn, including
 * `app`.
 */
export function handConnectionsTo(acceptor: TemplatedApp, app: TemplatedApp): void {
  parentApp(acceptor).addChildAppDescriptor(parentApp(app).getDescriptor());
}

/** Makes `acceptor` pass no more connections to `app`. Those already accepted still go to it. */
export function stopHandingTo(acceptor: TemplatedApp, app: TemplatedApp): void {
  parentApp(acceptor).removeChildAppDescriptor(parentApp(app).getDescriptor());
}

function parentApp(app: TemplatedApp): ParentApp {
  return app as unknown as ParentApp;
}
