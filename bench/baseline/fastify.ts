// The main baseline: what a good engineer writes in an afternoon. It uses Fastify, JSON.parse and
// one js.publish per event. It returns 200 after all acknowledgements.

import { createGunzip } from "node:zlib";
import { jetstream } from "@nats-io/jetstream";
import fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import {
  type CaptureBody,
  connectToNats,
  liveSubject,
  readProjects,
  recordOf,
  storable,
} from "./records.ts";

const bodyBytesMax = 100 * 1_048_576;
/** The client's default of 5 s is too short for 45,000 events that each wait for the disk. */
const ackTimeoutMs = 60_000;

const answerSchema = {
  type: "object",
  properties: {
    status: { type: "string" },
    accepted: { type: "integer" },
    dropped: { type: "integer" },
  },
};

const projects = readProjects();
const js = jetstream(await connectToNats(), { timeout: ackTimeoutMs });
const app = fastify({ bodyLimit: bodyBytesMax });

// Fastify's own JSON parser also guards against prototype poisoning, which costs time.
app.removeContentTypeParser("application/json");
app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) => {
  try {
    done(null, JSON.parse(body as string));
  } catch (error) {
    done(Object.assign(error as Error, { statusCode: 400 }));
  }
});

app.addHook("preParsing", async (request, _reply, payload) => {
  if (request.headers["content-encoding"] !== "gzip") return payload;
  // Fastify compares this with Content-Length, which counts the compressed bytes.
  const inflated = Object.assign(createGunzip(), { receivedEncodedLength: 0 });
  payload.on("data", (chunk: Buffer) => {
    inflated.receivedEncodedLength += chunk.length;
  });
  return payload.pipe(inflated);
});

async function capture(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const body = request.body as CaptureBody;
  const projectId = projects.get(body.api_key ?? "");
  if (projectId === undefined) return reply.code(401).send({ status: "unknown_api_key" });
  const subject = liveSubject(projectId);
  const received = { projectId, at: new Date().toISOString(), ip: request.ip };
  const events = storable(body);
  await Promise.all(events.map((event) => js.publish(subject, recordOf(event, received))));
  return {
    status: "Ok",
    accepted: events.length,
    dropped: (body.batch?.length ?? 1) - events.length,
  };
}

for (const path of ["/capture/", "/batch/"])
  app.post(path, { schema: { response: { 200: answerSchema } } }, capture);
const address = await app.listen({ host: "127.0.0.1", port: 0 });
process.send?.({ port: Number(new URL(address).port) });
