// A proxy between a client and the gateway that checks every frame of the gateway against the
// published schema.
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";

/** Results of the published schema, by method. */
const RESULTS = {
  connect: "HelloOk",
  "agents.list": "AgentsListResult",
  "commands.list": "CommandsListResult",
  "models.list": "ModelsListResult",
  "sessions.create": "SessionsCreateResult",
  "sessions.delete": "SessionsDeleteResult",
  "tools.catalog": "ToolsCatalogResult",
  "tools.effective": "ToolsEffectiveResult",
  "logs.tail": "LogsTailResult",
  "tasks.list": "TasksListResult",
  "talk.catalog": "TalkCatalogResult",
  "update.status": "UpdateStatusResult",
  "progressCard.get": "ProgressCardGetResult",
  "agent.identity.get": "AgentIdentityResult",
  "sessions.branches.list": "SessionsBranchesListResult",
  "sessions.companion.state": "SessionsCompanionStateResult",
  "sessions.observer.visibility": "SessionsObserverVisibilityResult",
};
const EVENTS = { agent: "AgentEvent", tick: "TickEvent", shutdown: "ShutdownEvent" };
const CHAT = {
  status: "ChatStatusEvent",
  delta: "ChatDeltaEvent",
  final: "ChatFinalEvent",
  aborted: "ChatAbortedEvent",
  error: "ChatErrorEvent",
};

export class Recorder {
  /** The frames of the gateway that do not match the schema. */
  violations = [];
  /** Methods that the gateway does not know. */
  unknown = new Set();
  /** The number of checked frames. */
  frames = 0;

  constructor(modules, gateway) {
    const require = createRequire(`${modules}/x.js`);
    const Ajv = require("ajv/dist/2020").default;
    this.WebSocket = require("ws");
    const file = `${modules}/@openclaw/gateway-protocol/protocol.schema.json`;
    this.definitions = JSON.parse(fs.readFileSync(file, "utf8")).definitions;
    this.ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
    this.validators = new Map();
    this.gateway = gateway;
  }

  check(name, value) {
    if (!this.validators.has(name)) {
      this.validators.set(name, this.ajv.compile(this.definitions[name]));
    }
    const validate = this.validators.get(name);
    if (!validate(value)) {
      this.violations.push(`${name}: ${this.ajv.errorsText(validate.errors)}: ${JSON.stringify(value).slice(0, 400)}`);
    }
  }

  /** Checks a frame of the gateway; `asked` are the methods of the open requests, by id. */
  checkFrame(frame, asked) {
    this.frames += 1;
    if (frame.type === "event") {
      this.check("EventFrame", frame);
      // The Node gateway sends the session key of agent events, too; its schema lacks it.
      const { sessionKey, ...payload } = frame.payload ?? {};
      if (frame.event === "chat") this.check(CHAT[payload.state], frame.payload);
      else if (EVENTS[frame.event]) this.check(EVENTS[frame.event], frame.event === "agent" ? payload : frame.payload);
      else if (frame.event === "sessions.changed" && payload.session) this.check("SessionRow", payload.session);
      return;
    }
    this.check("ResponseFrame", frame);
    const method = asked.get(frame.id);
    asked.delete(frame.id);
    if (!frame.ok) {
      if (frame.error.details?.code === "UNKNOWN_METHOD") this.unknown.add(method);
      return;
    }
    if (RESULTS[method]) this.check(RESULTS[method], frame.payload);
    const rows = frame.payload?.sessions ?? frame.payload?.list?.sessions;
    if (method.startsWith("sessions.") && Array.isArray(rows)) rows.forEach((row) => this.check("SessionRow", row));
    for (const row of [frame.payload?.sessionInfo, frame.payload?.session]) {
      if (row) this.check("SessionRow", row);
    }
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
        this.checkFrame(JSON.parse(text), asked);
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
