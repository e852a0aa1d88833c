// What the published schema (`@openclaw/gateway-protocol`) says about the frames of a gateway.
import fs from "node:fs";
import { createRequire } from "node:module";

/** Results whose name in the schema does not follow from the method's. */
const RESULTS = {
  connect: "HelloOk",
  "agent.identity.get": "AgentIdentityResult",
  "exec.approvals.get": "ExecApprovalsSnapshot",
  "tools.github.status": "ToolsGitHubStatusResult",
};

/** The rows of sessions in a payload. */
const rows = (payload) => payload?.list?.sessions ?? payload?.sessions ?? [];
const each = (name, values) => (values ?? []).map((value) => [name, value]);
const history = (payload) => [
  ...(payload.kind ? [["ChatHistoryCursorResult", payload]] : []),
  ...(payload.sessionInfo ? [["SessionRow", payload.sessionInfo]] : []),
];

/**
 * Methods without a schema of the whole result: the parts that have one, none for an empty list. A method of the
 * run that is neither here nor in the schema is a failure.
 */
const PARTS = {
  agent: () => [],
  "agent.wait": () => [],
  "chat.abort": () => [],
  "chat.history": history,
  "chat.metadata": (it) => [...each("ModelChoice", it.models), ...each("CommandEntry", it.commands)],
  "chat.send": () => [],
  "chat.startup": history,
  "config.get": () => [],
  "cron.list": (it) => each("CronJob", it.jobs),
  "cron.runs": (it) => each("CronRunLogEntry", it.entries),
  "cron.status": () => [],
  "device.pair.list": () => [],
  "diagnostics.lanes": () => [],
  "doctor.memory.status": () => [],
  "exec.approval.get": () => [],
  "exec.approval.list": () => [],
  "exec.approval.resolve": () => [],
  health: () => [],
  "last-heartbeat": () => [],
  "models.authStatus": () => [],
  "node.list": () => [],
  "node.pair.list": () => [],
  "openclaw.approval.list": () => [],
  "plugins.catalog.browse": () => [],
  "plugin.approval.list": (it) => each("PluginApprovalRequestParams", it.map((pending) => pending.request)),
  "plugin.approval.resolve": () => [],
  "sessions.describe": (it) => (it.session ? [["SessionRow", it.session]] : []),
  "sessions.get": () => [],
  "sessions.list": (it) => each("SessionRow", rows(it)),
  "sessions.messages.subscribe": () => [],
  "sessions.messages.unsubscribe": () => [],
  "sessions.patch": (it) => each("SessionRow", [it.entry]),
  "sessions.reset": (it) => each("SessionRow", [it.entry]),
  "sessions.subscribe": (it) => each("SessionRow", rows(it)),
  "sessions.usage": () => [],
  "skills.library.list": () => [],
  "skills.status": () => [],
  status: () => [],
  "system-presence": (it) => each("PresenceEntry", it),
  "themes.list": () => [],
  "transcripts.list": () => [],
  "tts.status": () => [],
  "usage.status": () => [],
  "users.list": () => [],
  "users.prefs.get": () => [],
  "voicewake.get": () => [],
  "webSearch.status": () => [],
};

/** The same for events. `approval.*` and `mcp.*` are ours. */
const EVENT_PARTS = {
  "connect.challenge": () => [],
  "approval.requested": () => [],
  "approval.resolved": () => [],
  "plugin.approval.requested": (it) => [["PluginApprovalRequestParams", it.request]],
  "plugin.approval.resolved": (it) => (it.decision ? [["ApprovalDecision", it.decision]] : []),
  "mcp.server": () => [],
  "mcp.progress": () => [],
  "sessions.changed": (it) => (it.session ? [["SessionRow", it.session]] : []),
};

/** Fields that the clients need and the Node gateway sends; the schema, of an older version, forbids them. */
const NEWER = { "skills.proposals.list": ["installedSkills"], "event agent": ["sessionKey"] };

/** `sessions.branches.list` is SessionsBranchesList in the schema. */
const named = (name) => name.split(/[.-]/).map((word) => word[0].toUpperCase() + word.slice(1)).join("");

export class Schema {
  /** What does not match. */
  violations = new Set();
  /** The number of checked frames. */
  frames = 0;
  /** Methods and events whose payload has a schema, and those without one, that occurred. */
  checked = new Set();
  partly = new Set();
  unpublished = new Set();

  constructor(modules) {
    const Ajv = createRequire(`${modules}/x.js`)("ajv").default;
    const file = `${modules}/@openclaw/gateway-protocol/protocol.schema.json`;
    this.definitions = JSON.parse(fs.readFileSync(file, "utf8")).definitions;
    this.ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false, validateSchema: false });
    this.validators = new Map();
    const details = this.definitions.GatewayErrorDetails.anyOf;
    this.errorCodes = new Set(details.map((it) => it.properties.code.const));
  }

  #check(name, value, what) {
    if (!this.validators.has(name)) this.validators.set(name, this.ajv.compile(this.definitions[name]));
    const validate = this.validators.get(name);
    if (!validate(value)) {
      const shown = JSON.stringify(value)?.slice(0, 400);
      this.violations.add(`${what}: ${name}: ${this.ajv.errorsText(validate.errors)}: ${shown}`);
    }
  }

  #checkPayload(what, whole, parts, payload) {
    if (this.definitions[whole] && !parts) {
      this.checked.add(what);
      const known = NEWER[what] ? { ...payload } : payload;
      for (const field of NEWER[what] ?? []) delete known[field];
      return this.#check(whole, known, what);
    }
    if (!parts) return this.violations.add(`${what}: neither in the schema nor in xtask/compat/schema.mjs`);
    if (this.definitions[whole]) {
      return this.violations.add(`${what}: the schema has ${whole}; remove it from xtask/compat/schema.mjs`);
    }
    const pieces = parts(payload ?? {});
    for (const [name, value] of pieces) this.#check(name, value, what);
    (pieces.length > 0 ? this.partly : this.unpublished).add(what);
  }

  event(frame) {
    this.frames += 1;
    this.#check("EventFrame", frame, frame.event);
    this.#checkPayload(`event ${frame.event}`, `${named(frame.event)}Event`, EVENT_PARTS[frame.event], frame.payload);
  }

  /** Checks the response to a method. */
  response(frame, method) {
    this.frames += 1;
    this.#check("ResponseFrame", frame, method);
    if (frame.ok) {
      const whole = RESULTS[method] ?? `${named(method)}Result`;
      this.#checkPayload(method, whole, PARTS[method], frame.payload);
    } else if (this.errorCodes.has(frame.error.details?.code)) {
      this.#check("GatewayErrorDetails", frame.error.details, `error of ${method}`);
    }
  }

  report() {
    const list = (names) => [...names].sort().join(", ");
    const unpublished = [...this.unpublished].filter((name) => !this.partly.has(name));
    return [
      `${this.frames} frames of the gateway checked, ${this.violations.size} violations of the schema`,
      `payloads checked as a whole (${this.checked.size}): ${list(this.checked)}`,
      `parts checked (${this.partly.size}): ${list(this.partly)}`,
      `no schema published (${unpublished.length}): ${list(unpublished)}`,
      ...[...this.violations].slice(0, 10).map((violation) => `  ${violation}`),
    ];
  }
}
