// The one place that imports uWebSockets.js, so that another build of it is swapped in here and in
// package.json alone; and what it can do that its declarations do not say. No rule of ours here.

import type { TemplatedApp, us_listen_socket } from "uWebSockets.js";

export type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from "uWebSockets.js";
export { App, SSLApp, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";

/**
 * LIBUS_LISTEN_EXCLUSIVE_PORT: without it the port is shared by SO_REUSEPORT, with whoever else has
 * it open.
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

/** Listens on a port nobody else has. Undefined when that fails: uWS does not say why. */
export function listenExclusively(
  app: TemplatedApp,
  host: string,
  port: number,
): us_listen_socket | undefined {
  return listenAs(app, { host, port, options: EXCLUSIVE_PORT });
}

/**
 * Listens on a port together with others of the same user who share it too; the kernel spreads the
 * connections. Not for port 0, which uWS never shares. Undefined when that fails.
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
  // The binary calls back before it returns.
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
 * Connections that `acceptor` accepts from now on belong to `app`, in turn with the other apps it
 * hands them to.
 */
export function handConnectionsTo(acceptor: TemplatedApp, app: TemplatedApp): void {
  parentApp(acceptor).addChildAppDescriptor(parentApp(app).getDescriptor());
}

/** Ends that. Connections already accepted still go to `app`. */
export function stopHandingTo(acceptor: TemplatedApp, app: TemplatedApp): void {
  parentApp(acceptor).removeChildAppDescriptor(parentApp(app).getDescriptor());
}

function parentApp(app: TemplatedApp): ParentApp {
  return app as unknown as ParentApp;
}
