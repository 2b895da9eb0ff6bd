// The limit on the chunks of one turn relies on this behaviour of uWS.

import { createConnection } from "node:net";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { App, listenOn, SSLApp, us_socket_local_port } from "../../../src/gateway/http/uws.ts";
import { createAuthority } from "../../kit/certificates.ts";

const head = "POST / HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n";
const tiny = "1\r\nx\r\n".repeat(15_000);
const behind = "0\r\n\r\nPOST /behind HTTP/1.1\r\nHost: p\r\nContent-Length: 0\r\n\r\n";

test.each(["http", "https"])(
  "uWS delivers nothing from a connection closed during a read: %s",
  async (scheme) => {
    const isTls = scheme === "https";
    const { ca, server } = await createAuthority();
    const { certFile, keyFile } = await server();
    const app = isTls ? SSLApp({ cert_file_name: certFile, key_file_name: keyFile }) : App();
    onTestFinished(() => void app.close());
    const heard: string[] = [];
    app.any("/*", (response, request) => {
      heard.push(request.getUrl());
      response.onAborted(() => void heard.push("aborted"));
      let chunks = 0;
      response.onData(() => {
        chunks++;
        if (chunks === 10) response.close();
        if (chunks > 10) heard.push("one more");
      });
    });
    const port = us_socket_local_port(
      listenOn(app, { host: "127.0.0.1", port: 0, isShared: false })!,
    );

    for (let round = 0; round < 5; round++) {
      const socket = isTls ? connect({ port, ca }) : createConnection({ port });
      socket.on("error", () => {});
      const closed = new Promise((resolve) => socket.on("close", resolve));
      socket.write(head + tiny + behind);
      await closed;
    }
    expect(heard).toEqual(Array.from({ length: 5 }, () => ["/", "aborted"]).flat());
  },
);
