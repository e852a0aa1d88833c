// A proxy between a client and the gateway that has every frame of the gateway checked.
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";

export class Recorder {
  /** `unknown` gets the methods that the gateway does not know. */
  constructor(modules, gateway, schema, unknown) {
    this.WebSocket = createRequire(`${modules}/x.js`)("ws");
    this.gateway = gateway;
    this.schema = schema;
    this.unknown = unknown;
  }

  /** Checks a frame of the gateway; `asked` are the methods of the requests, by id. */
  #check(frame, asked) {
    if (frame.type === "event") return this.schema.event(frame);
    const method = asked.get(frame.id);
    if (frame.error?.details?.code === "UNKNOWN_METHOD") this.unknown.add(method);
    this.schema.response(frame, method);
  }

  /** Starts the proxy; returns its port. `log` gets every frame. */
  listen(log) {
    const { WebSocket, gateway } = this;
    const out = fs.createWriteStream(log);
    const server = http.createServer((request, response) => {
      const options = { method: request.method, headers: request.headers };
      const forwarded = http.request(`http://${gateway}${request.url}`, options, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      forwarded.on("error", () => response.destroy());
      request.pipe(forwarded);
    });
    const sockets = new WebSocket.Server({ server, maxPayload: 64 << 20 });
    sockets.on("connection", (client, request) => {
      // The gateway compares both.
      const { host, origin } = request.headers;
      const headers = origin ? { host, origin } : {};
      const upstream = new WebSocket(`ws://${gateway}${request.url}`, { headers, maxPayload: 64 << 20 });
      const asked = new Map();
      const waiting = [];
      client.on("message", (data) => {
        const text = String(data);
        out.write(`> ${text}\n`);
        const frame = JSON.parse(text);
        if (frame.type === "req") asked.set(frame.id, frame.method);
        if (upstream.readyState === WebSocket.OPEN) upstream.send(text);
        else waiting.push(text);
      });
      upstream.on("open", () => waiting.splice(0).forEach((text) => upstream.send(text)));
      upstream.on("message", (data) => {
        const text = String(data);
        out.write(`< ${text}\n`);
        this.#check(JSON.parse(text), asked);
        client.send(text);
      });
      client.on("close", () => upstream.close());
      upstream.on("close", (code, reason) => client.close(code >= 3000 || code === 1008 ? code : 1000, reason));
      client.on("error", () => upstream.close());
      upstream.on("error", () => client.close());
    });
    return new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => {
        server.unref();
        resolve(server.address().port);
      });
    });
  }
}
