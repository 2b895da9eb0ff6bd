// The only file that imports uWebSockets.js. It also declares functions that are missing from the
// library's type declarations.

import type { TemplatedApp, us_listen_socket } from "uWebSockets.js";

export type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from "uWebSockets.js";
export { App, SSLApp, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";

/**
 * uWS's LIBUS_LISTEN_EXCLUSIVE_PORT. Without this option, other processes can open the same port
 * (SO_REUSEPORT).
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

interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /**
   * This flag is true if other processes of the same user may open the same port. It must be false
   * for port 0.
   */
  readonly isShared: boolean;
}

export function listenOn(
  app: TemplatedApp,
  { host, port, isShared }: ListenOptions,
): us_listen_socket | undefined {
  const options = isShared ? SHARED_PORT : EXCLUSIVE_PORT;
  let listening: us_listen_socket | undefined;
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

/** Makes `acceptor` pass connections to its apps in rotation, and adds `app` to these apps. */
export function handConnectionsTo(acceptor: TemplatedApp, app: TemplatedApp): void {
  parentApp(acceptor).addChildAppDescriptor(parentApp(app).getDescriptor());
}

export function stopHandingTo(acceptor: TemplatedApp, app: TemplatedApp): void {
  parentApp(acceptor).removeChildAppDescriptor(parentApp(app).getDescriptor());
}

function parentApp(app: TemplatedApp): ParentApp {
  return app as unknown as ParentApp;
}
