// Checks in its own network namespace whether the kernel closes a connection on request. Exit code
// 0 if it does.

import { execFileSync } from "node:child_process";
import { type AddressInfo, connect, createServer } from "node:net";

const host = "127.0.0.1";
const listener = createServer((socket) => void socket.on("error", () => {}));
listener.listen(0, host, () => {
  const socket = connect((listener.address() as AddressInfo).port, host);
  socket.once("error", () => process.exit(0));
  socket.once("connect", () => {
    execFileSync("ss", ["--tcp", "--all", "--kill", "dst", host], { stdio: "ignore" });
    setTimeout(() => {
      process.stderr.write("this kernel does not end connections on request\n");
      process.exit(1);
    }, 1_000);
  });
});
