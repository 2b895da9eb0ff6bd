// Listens on the public port. The port can be shared with other processes, and can use TLS with a
// certificate that is renewed while the gateway runs.

import { createServer } from "node:net";
import { portFault } from "../../platform/base/http-port.ts";
import {
  App,
  handConnectionsTo,
  listenOn,
  SSLApp,
  stopHandingTo,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from "./uws.ts";

/**
 * With `alone` and `first`, no other process may have the port yet. With `first`, `joining`
 * processes may share the port afterwards.
 */
export type PortSharing = "alone" | "first" | "joining";

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

interface Front {
  readonly acceptor: TemplatedApp;
  renew(): void;
  close(): void;
}

export class Listener {
  readonly #front: Front;
  readonly #listens: (socket: us_listen_socket) => void;
  #listening: us_listen_socket | undefined;

  /**
   * `prepare` adds the filter and the routes to an app. It is called again at each renewal of the
   * certificate. `listens` receives the socket of the port before any connection is accepted.
   */
  constructor(
    prepare: (app: TemplatedApp) => void,
    files?: CertificateFiles,
    listens: (socket: us_listen_socket) => void = () => {},
  ) {
    this.#listens = listens;
    this.#front = files === undefined ? plainFront(prepare) : tlsFront(prepare, files);
  }

  async listen(host: string, port: number, sharing: PortSharing): Promise<number> {
    this.#listening = this.#listenAs(sharing, host, port);
    if (this.#listening === undefined) {
      throw new Error(`cannot listen on ${host} port ${port}: ${await whyNot(host, port)}`);
    }
    this.#listens(this.#listening);
    return us_socket_local_port(this.#listening);
  }

  stop(): void {
    if (this.#listening !== undefined) us_listen_socket_close(this.#listening);
    this.#listening = undefined;
  }

  /** Throws if the files contain no valid pair of certificate and key. */
  renewCertificate(): void {
    this.#front.renew();
  }

  close(): void {
    this.stop();
    this.#front.close();
  }

  #listenAs(sharing: PortSharing, host: string, port: number): us_listen_socket | undefined {
    const { acceptor } = this.#front;
    if (sharing === "joining") return listenOn(acceptor, { host, port, isShared: true });
    const alone = listenOn(acceptor, { host, port, isShared: false });
    if (alone === undefined || sharing === "alone") return alone;
    // Opening an exclusive socket first verifies that no other process has the port. Then the port
    // is opened again as shared.
    const portFound = us_socket_local_port(alone);
    us_listen_socket_close(alone);
    return listenOn(acceptor, { host, port: portFound, isShared: true });
  }
}

function plainFront(prepare: (app: TemplatedApp) => void): Front {
  const app = App();
  prepare(app);
  return { acceptor: app, renew: () => {}, close: () => void app.close() };
}

/**
 * uWS cannot change the certificate of an app. So one app accepts all connections, and passes each
 * of them to the app that has the newest certificate.
 */
function tlsFront(prepare: (app: TemplatedApp) => void, files: CertificateFiles): Front {
  const acceptor = SSLApp({});
  const apps: TemplatedApp[] = [];

  function renew(): void {
    const next = appWith(files);
    prepare(next);
    handConnectionsTo(acceptor, next);
    const before = apps.at(-1);
    if (before !== undefined) stopHandingTo(acceptor, before);
    apps.push(next);
  }

  function close(): void {
    acceptor.close();
    for (const app of apps) app.close();
  }

  renew();
  return { acceptor, renew, close };
}

function appWith({ cert, key }: CertificateFiles): TemplatedApp {
  try {
    return SSLApp({ cert_file_name: cert, key_file_name: key });
  } catch (cause) {
    throw new Error(
      `cannot load the certificate ${cert} and its key ${key}: the TLS library rejects them`,
      { cause },
    );
  }
}

/** uWS does not report why it cannot listen, so Node tries the same port to find the reason. */
function whyNot(host: string, port: number): Promise<string> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(portFault(error, port, "port")));
    probe.listen({ host, port, exclusive: true }, () => {
      probe.close(() => resolve("the HTTP library cannot open the port, although Node can"));
    });
  });
}
