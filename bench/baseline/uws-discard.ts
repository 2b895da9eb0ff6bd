// The ceiling: bare uWebSockets.js that reads and discards the body. No server in one process with
// this HTTP library can be faster.

import { App, us_socket_local_port } from "uWebSockets.js";

const answer = '{"status":"Ok","accepted":1,"dropped":0}\n';

App()
  .post("/*", (response) => {
    response.onAborted(() => {});
    response.onData((_chunk, isLast) => {
      if (!isLast) return;
      response.cork(() => {
        response.writeHeader("Content-Type", "application/json").end(answer);
      });
    });
  })
  .listen("127.0.0.1", 0, (socket) => {
    if (socket === false) throw new Error("listen: no free port");
    process.send?.({ port: us_socket_local_port(socket) });
  });
