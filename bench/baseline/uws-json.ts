// The baseline without the cost of a web framework: uWebSockets.js, JSON.parse, and one js.publish
// per event.

import { App, type HttpResponse, us_socket_local_port } from "uWebSockets.js";
import { gunzip } from "node:zlib";
import { jetstream } from "@nats-io/jetstream";
import {
  type CaptureBody,
  connectToNats,
  liveSubject,
  readProjects,
  recordOf,
  storable,
} from "./records.ts";

/** The same value as in the Fastify baseline. */
const ackTimeoutMs = 60_000;

const projects = readProjects();
const js = jetstream(await connectToNats(), { timeout: ackTimeoutMs });
const decoder = new TextDecoder();

interface Exchange {
  readonly response: HttpResponse;
  readonly gzipped: boolean;
  readonly ip: string;
  aborted: boolean;
}

async function capture(exchange: Exchange, json: string): Promise<void> {
  const body = JSON.parse(json) as CaptureBody;
  const projectId = projects.get(body.api_key ?? "");
  if (projectId === undefined) {
    answer(exchange, "401 Unauthorized", '{"status":"unknown_api_key"}');
    return;
  }
  const subject = liveSubject(projectId);
  const received = { projectId, at: new Date().toISOString(), ip: exchange.ip };
  const events = storable(body);
  await Promise.all(events.map((event) => js.publish(subject, recordOf(event, received))));
  const dropped = (body.batch?.length ?? 1) - events.length;
  answer(exchange, "200 OK", `{"status":"Ok","accepted":${events.length},"dropped":${dropped}}`);
}

function answer({ response, aborted }: Exchange, status: string, text: string): void {
  if (aborted) return;
  response.cork(() => {
    response.writeStatus(status).writeHeader("Content-Type", "application/json").end(text);
  });
}

function whole(exchange: Exchange, body: Buffer): void {
  const fail = (error: Error) =>
    answer(exchange, "400 Bad Request", JSON.stringify({ status: error.message }));
  if (!exchange.gzipped) {
    capture(exchange, body.toString()).catch(fail);
    return;
  }
  gunzip(body, (error, inflated) => {
    if (error === null) capture(exchange, inflated.toString()).catch(fail);
    else fail(error);
  });
}

App()
  .post("/*", (response, request) => {
    const gzipped = request.getHeader("content-encoding") === "gzip";
    const ip = decoder.decode(response.getRemoteAddressAsText());
    const exchange: Exchange = { response, gzipped, ip, aborted: false };
    response.onAborted(() => {
      exchange.aborted = true;
    });
    const chunks: Buffer[] = [];
    response.onData((chunk, isLast) => {
      // uWS reuses a chunk's memory after this call.
      chunks.push(Buffer.from(chunk.slice(0)));
      if (isLast) whole(exchange, chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
    });
  })
  .listen("127.0.0.1", 0, (socket) => {
    if (socket === false) throw new Error("listen: no free port");
    process.send?.({ port: us_socket_local_port(socket) });
  });
