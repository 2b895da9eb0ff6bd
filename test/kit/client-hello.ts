import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect } from "node:tls";

export async function clientHello(): Promise<Buffer> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  connect({ host: "127.0.0.1", port }).on("error", () => {});
  const [socket] = (await once(listener, "connection")) as [Socket];
  const [hello] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  listener.close();
  return hello;
}
