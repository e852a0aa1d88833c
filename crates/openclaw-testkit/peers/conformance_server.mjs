// A server with the tools, resources and prompts that the scenarios of the official conformance suite for servers
// ask for: node conformance_server.mjs FOLDER_WITH_NODE_MODULES legacy|modern
//
// It is made with the TypeScript SDK 2. `legacy` serves the versions with a handshake, with sessions; `modern` serves
// 2026-07-28. It listens on 127.0.0.1, on the port in PORT or on a free one (0), prints its address as the first line,
// and exits when its stdin is closed.
import { createHmac, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const packages = createRequire(path.resolve(process.argv[2], "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const sdk = await load("@modelcontextprotocol/server");
const { toNodeHandler, NodeStreamableHTTPServerTransport } = await load("@modelcontextprotocol/node");
const isModern = process.argv[3] === "modern";

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

const text = (words) => ({ content: [{ type: "text", text: words }] });
const none = { type: "object", properties: {} };
const strings = (...names) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});
const elicit = (message, schema) => ({ method: "elicitation/create", params: { mode: "form", message, requestedSchema: schema } });
const sample = (words, maxTokens) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text: words } }], maxTokens },
});
const roots = () => ({ method: "roots/list", params: {} });
const need = (inputRequests, requestState) => ({ resultType: "input_required", inputRequests, ...(requestState && { requestState }) });

const sign = (words) => `${words}.${createHmac("sha256", "conformance").update(words).digest("hex")}`;
function signed(state) {
  const words = String(state).split(".")[0];
  if (sign(words) !== state) throw new sdk.ProtocolError(-32602, "invalid requestState");
  return words;
}

/** Answers to the input that a former result asked for, by key. */
const given = (params) => params.inputResponses ?? {};
const accepted = (answer) => (answer?.action === "accept" && answer.content) || undefined;
const said = (answer) => [answer?.content].flat()[0]?.text;
const completed = (answer) => text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);

/** Asks for one input with `key`, and goes on with the answer. */
const asking = (key, request, done) => (params) => {
  const answer = given(params)[key];
  return answer === undefined ? need({ [key]: request(params) }) : done(answer);
};

const titled = (...titles) => titles.map((title, at) => ({ const: `value${at + 1}`, title }));
const options = ["option1", "option2", "option3"];
let extraTools = 0;
let extraPrompts = 0;
let changed = () => {};

const tools = {
  test_simple_text: [none, () => text("This is a simple text response for testing.")],
  test_image_content: [none, () => ({ content: [{ type: "image", data: PIXEL, mimeType: "image/png" }] })],
  test_audio_content: [none, () => ({ content: [{ type: "audio", data: SILENCE, mimeType: "audio/wav" }] })],
  test_embedded_resource: [
    none,
    () => ({
      content: [
        {
          type: "resource",
          resource: { uri: "test://embedded-resource", mimeType: "text/plain", text: "This is an embedded resource content." },
        },
      ],
    }),
  ],
  test_multiple_content_types: [
    none,
    () => ({
      content: [
        { type: "text", text: "Multiple content types test:" },
        { type: "image", data: PIXEL, mimeType: "image/png" },
        {
          type: "resource",
          resource: { uri: "test://mixed-content-resource", mimeType: "application/json", text: '{"test":"data","value":123}' },
        },
      ],
    }),
  ],
  test_tool_with_logging: [
    none,
    async (_, { mcpReq }) => {
      for (const words of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await mcpReq.log("info", words);
        await pause(50);
      }
      return text("logged");
    },
  ],
  test_logging_tool: [
    none,
    async (_, { mcpReq }) => {
      await mcpReq.log("info", "a message");
      return text("logged");
    },
  ],
  test_tool_with_progress: [
    none,
    async (params, { mcpReq }) => {
      for (const progress of [0, 50, 100]) {
        const progressToken = params._meta?.progressToken ?? mcpReq._meta?.progressToken;
        if (progressToken !== undefined) {
          await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
        }
        await pause(50);
      }
      return text("done");
    },
  ],
  test_error_handling: [none, () => ({ ...text("This tool intentionally returns an error for testing"), isError: true })],
  test_reconnection: [
    none,
    async (_, { http }) => {
      http?.closeSSE?.();
      await pause(100);
      return text("reconnected");
    },
  ],
  test_sampling: [
    strings("prompt"),
    asking("sample", ({ arguments: { prompt } }) => sample(prompt, 100), (answer) => text(`LLM response: ${said(answer)}`)),
  ],
  test_elicitation: [
    strings("message"),
    asking("ask", ({ arguments: { message } }) => elicit(message, strings("username", "email")), ({ action, content }) =>
      text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`),
    ),
  ],
  test_streaming_elicitation: [none, asking("ask", () => elicit("Who?", strings("name")), completed)],
  test_elicitation_sep1034_defaults: [
    none,
    asking(
      "ask",
      () =>
        elicit("Please review the defaults", {
          type: "object",
          properties: {
            name: { type: "string", default: "John Doe" },
            age: { type: "integer", default: 30 },
            score: { type: "number", default: 95.5 },
            status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
            verified: { type: "boolean", default: true },
          },
        }),
      completed,
    ),
  ],
  test_elicitation_sep1330_enums: [
    none,
    asking(
      "ask",
      () =>
        elicit("Please choose", {
          type: "object",
          properties: {
            untitledSingle: { type: "string", enum: options },
            titledSingle: { type: "string", oneOf: titled("First Option", "Second Option", "Third Option") },
            legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
            untitledMulti: { type: "array", items: { type: "string", enum: options } },
            titledMulti: { type: "array", items: { anyOf: titled("First Choice", "Second Choice", "Third Choice") } },
          },
        }),
      completed,
    ),
  ],
  json_schema_2020_12_tool: [
    {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: {
        address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" }, city: { type: "string" } } },
      },
      properties: {
        name: { type: "string" },
        address: { $ref: "#/$defs/address" },
        contactMethod: { type: "string", enum: ["phone", "email"] },
        phone: { type: "string" },
        email: { type: "string" },
      },
      allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
      if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
      then: { required: ["phone"] },
      else: { required: ["email"] },
      additionalProperties: false,
    },
    () => text("valid"),
  ],
  test_header_param: [
    { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } }, required: ["region"] },
    ({ arguments: { region } }) => text(`region: ${region}`),
  ],
  test_missing_capability: [
    none,
    (params, { mcpReq }) => {
      const declared = mcpReq.envelope?.[CAPABILITIES] ?? params._meta?.[CAPABILITIES] ?? {};
      if (!declared.sampling) throw new sdk.MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
      return text("declared");
    },
  ],
  test_trigger_tool_change: [none, () => ((extraTools += 1), changed("tools"), text("changed"))],
  test_trigger_prompt_change: [none, () => ((extraPrompts += 1), changed("prompts"), text("changed"))],
  test_input_required_result_elicitation: [
    none,
    (params) => {
      const { name } = accepted(given(params).user_name) ?? {};
      if (typeof name === "string") return text(`Hello, ${name}!`);
      return need({ user_name: elicit("What is your name?", strings("name")) });
    },
  ],
  test_input_required_result_sampling: [
    none,
    asking("capital_question", () => sample("What is the capital of France?", 100), (answer) => text(`${said(answer)}`)),
  ],
  test_input_required_result_list_roots: [none, asking("client_roots", roots, (answer) => text(JSON.stringify(answer.roots)))],
  test_input_required_result_request_state: [
    none,
    (params) => {
      const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
      if (!given(params).confirm) return need({ confirm: elicit("Please confirm", schema) }, sign("confirm"));
      signed(params.requestState);
      return text("state-ok");
    },
  ],
  test_input_required_result_tampered_state: [
    none,
    (params) => {
      if (!params.requestState) return need({ confirm: elicit("Please confirm", strings("ok")) }, sign("tamper"));
      signed(params.requestState);
      return text("state-ok");
    },
  ],
  test_input_required_result_multiple_inputs: [
    none,
    (params) => {
      const wanted = { user_name: elicit("What is your name?", strings("name")), greeting: sample("Generate a greeting", 50), client_roots: roots() };
      const missing = Object.keys(wanted).filter((key) => !given(params)[key]);
      if (missing.length > 0) return need(wanted, sign("several"));
      signed(params.requestState);
      return text("all there");
    },
  ],
  test_input_required_result_multi_round: [
    none,
    (params) => {
      const round = params.requestState ? signed(params.requestState) : "0";
      if (round === "0") return need({ step1: elicit("Step 1: What is your name?", strings("name")) }, sign("1"));
      if (round === "1") return need({ step2: elicit("Step 2: What is your favorite color?", strings("color")) }, sign("2"));
      return text("three rounds");
    },
  ],
  test_input_required_result_capabilities: [
    none,
    (params, { mcpReq }) => {
      const declared = mcpReq.envelope?.[CAPABILITIES] ?? params._meta?.[CAPABILITIES] ?? {};
      if (Object.keys(given(params)).length > 0) return text("answered");
      const wanted = {};
      if (declared.elicitation) wanted.user_name = elicit("What is your name?", strings("name"));
      if (declared.sampling) wanted.greeting = sample("Generate a greeting", 50);
      return Object.keys(wanted).length > 0 ? need(wanted) : text("nothing to ask");
    },
  ],
};

const resources = {
  "test://static-text": { name: "static-text", mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { name: "static-binary", mimeType: "image/png", blob: PIXEL },
  "test://watched-resource": { name: "watched-resource", mimeType: "text/plain", text: "Watched." },
};
const user = (content) => ({ role: "user", content });
const prompts = {
  test_simple_prompt: [[], () => [user({ type: "text", text: "This is a simple prompt for testing." })]],
  test_prompt_with_arguments: [
    ["arg1", "arg2"],
    ({ arg1, arg2 }) => [user({ type: "text", text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` })],
  ],
  test_prompt_with_embedded_resource: [
    ["resourceUri"],
    ({ resourceUri: uri }) => [
      user({ type: "resource", resource: { uri, mimeType: "text/plain", text: "Embedded resource content for testing." } }),
      user({ type: "text", text: "Please process the embedded resource above." }),
    ],
  ],
  test_prompt_with_image: [
    [],
    () => [user({ type: "image", data: PIXEL, mimeType: "image/png" }), user({ type: "text", text: "Please analyze the image above." })],
  ],
  test_input_required_result_prompt: [[], () => [user({ type: "text", text: "With context." })]],
};
const hints = isModern ? { ttlMs: 0, cacheScope: "private" } : {};

function build() {
  const product = new sdk.McpServer(
    { name: "openclaw-conformance", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        completions: {},
        logging: {},
      },
    },
  );
  // Arguments in headers are compared with the schemas of these tools, which are not registered.
  product.toolInputSchemaJson = (name) => tools[name]?.[0];
  const on = (method, handler) => product.server.setRequestHandler(method, handler);
  on("tools/list", () => {
    const listed = Object.entries(tools).map(([name, [inputSchema]]) => ({ name, description: `The fixture ${name}.`, inputSchema }));
    for (let at = 0; at < extraTools; at += 1) listed.push({ name: `extra_${at}`, description: "Added.", inputSchema: none });
    return { tools: listed, ...hints };
  });
  on("tools/call", (request, ctx) => {
    const tool = tools[request.params.name];
    if (request.params.name.startsWith("extra_")) return text("added");
    if (!tool) throw new sdk.ProtocolError(-32602, `unknown tool ${request.params.name}`);
    const { inputResponses, requestState } = ctx.mcpReq;
    const state = typeof requestState === "function" ? requestState() : requestState;
    return tool[1]({ arguments: {}, ...request.params, inputResponses, requestState: state ?? request.params.requestState }, ctx);
  });
  on("resources/list", () => ({
    resources: Object.entries(resources).map(([uri, { name, mimeType }]) => ({ uri, name, mimeType, description: `The fixture ${name}.` })),
    ...hints,
  }));
  on("resources/templates/list", () => ({
    resourceTemplates: [
      { uriTemplate: "test://template/{id}/data", name: "template", description: "A fixture.", mimeType: "application/json" },
    ],
    ...hints,
  }));
  on("resources/read", ({ params: { uri } }) => {
    const [, id] = /^test:\/\/template\/([^/]+)\/data$/.exec(uri) ?? [];
    if (id) {
      const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
      return { contents: [{ uri, mimeType: "application/json", text: data }], ...hints };
    }
    if (!resources[uri]) throw new sdk.ResourceNotFoundError(uri);
    const { name, ...content } = resources[uri];
    return { contents: [{ uri, ...content }], ...hints };
  });
  on("prompts/list", () => {
    const listed = Object.entries(prompts).map(([name, [names]]) => ({
      name,
      description: `The fixture ${name}.`,
      arguments: names.map((argument) => ({ name: argument, description: "An argument.", required: true })),
    }));
    for (let at = 0; at < extraPrompts; at += 1) listed.push({ name: `extra_prompt_${at}`, description: "Added." });
    return { prompts: listed, ...hints };
  });
  on("prompts/get", (request, ctx) => {
    const { name, arguments: values = {} } = request.params;
    if (!prompts[name]) throw new sdk.ProtocolError(-32602, `unknown prompt ${name}`);
    if (name === "test_input_required_result_prompt" && !ctx.mcpReq.inputResponses?.user_context) {
      return need({ user_context: elicit("What context should the prompt use?", strings("context")) });
    }
    return { messages: prompts[name][1](values) };
  });
  on("completion/complete", () => ({ completion: { values: ["paris", "park", "party"], total: 3, hasMore: false } }));
  if (!isModern) {
    on("logging/setLevel", () => ({}));
    on("resources/subscribe", () => ({}));
    on("resources/unsubscribe", () => ({}));
  }
  return product;
}

let handle;
if (isModern) {
  const handler = sdk.createMcpHandler(build, { legacy: "reject" });
  changed = (list) => (list === "tools" ? handler.notify.toolsChanged() : handler.notify.promptsChanged());
  handle = toNodeHandler(handler);
} else {
  const sessions = new Map();
  const events = [];
  const eventStore = {
    async storeEvent(stream, message) {
      events.push({ id: `${stream}:${events.length}`, stream, message });
      return events.at(-1).id;
    },
    async getStreamIdForEventId(id) {
      return events.find((event) => event.id === id)?.stream;
    },
    async replayEventsAfter(id, { send }) {
      const at = events.findIndex((event) => event.id === id);
      const { stream } = events[at] ?? {};
      for (const event of events.slice(at + 1).filter((event) => event.stream === stream)) await send(event.id, event.message);
      return stream;
    },
  };
  changed = (list) => {
    for (const { server } of sessions.values()) server.server.notification({ method: `notifications/${list}/list_changed` });
  };
  handle = async (request, response) => {
    const known = sessions.get(request.headers["mcp-session-id"]);
    if (known) return known.transport.handleRequest(request, response);
    const server = build();
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore,
      retryInterval: 500,
      onsessioninitialized: (id) => void sessions.set(id, { server, transport }),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    if (request.headers["mcp-session-id"]) return response.writeHead(404).end();
    await server.connect(transport);
    return transport.handleRequest(request, response);
  };
}

const http = createServer(async (request, response) => {
  const local = (value) => !value || ["localhost", "127.0.0.1", "[::1]"].includes(value.replace(/^https?:\/\//, "").replace(/:\d+$/, ""));
  if (!local(request.headers.host) || !local(request.headers.origin)) return response.writeHead(403).end();
  try {
    await handle(request, response);
  } catch (error) {
    console.error(error);
    if (!response.headersSent) response.writeHead(500).end();
  }
});
http.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
process.stdin.on("end", () => process.exit(0)).resume();
