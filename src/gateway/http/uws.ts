// The only importer of uWebSockets.js: a different build of the library is selected here and in
// package.json alone. Also declares functions that the library's own declarations omit. Contains no
// rules of Penstock.

import type { TemplatedApp, us_listen_socket } from "uWebSockets.js";

export type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from "uWebSockets.js";
export { App, SSLApp, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";

/**
 * The value of uWS's LIBUS_LISTEN_EXCLUSIVE_PORT. Without this option SO_REUSEPORT shares the port
 * with any other process that has opened it.
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
 * Listens on a port that no other process has, and returns the socket. Returns undefined if the
 * port cannot be opened: uWS does not report the reason.
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
 * spreads the connections. Does not work with port 0, which uWS never shares. Returns undefined if
 * the port cannot be opened.
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
  // `listen` calls the callback before it returns.
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
 * Adds `app` to the apps of `acceptor`, which passes each connection that it accepts to one of its
 * apps in rotation.
 */
export function handConnectionsTo(acceptor: TemplatedApp, app: TemplatedApp): void {
  parentApp(acceptor).addChildAppDescriptor(parentApp(app).getDescriptor());
}

/**
 * Stops `acceptor` from passing new connections to `app`. Data of connections that it has already
 * passed still reaches `app`.
 */
export function stopHandingTo(acceptor: TemplatedApp, app: TemplatedApp): void {
  parentApp(acceptor).removeChildAppDescriptor(parentApp(app).getDescriptor());
}

function parentApp(app: TemplatedApp): ParentApp {
  return app as unknown as ParentApp;
}
