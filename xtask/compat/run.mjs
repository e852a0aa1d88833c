// Runs the front ends of the Node OpenClaw (npm `openclaw`) against our gateway. Every frame that the
// gateway sends is checked against the published schema.
//
//   node run.mjs MODULES GATEWAY OUTPUT [NAME...]
import fs from "node:fs";
import path from "node:path";
import { acp, agent, agentCommands, agentModel, agentSession, configure, gatewayCall, gatewayProbe, health, mcpServe, status } from "./commands.mjs";
import { controlUi, findChromium } from "./control-ui.mjs";
import { hub } from "./hub.mjs";
import { startModel } from "./model.mjs";
import { pages } from "./pages.mjs";
import { Program, stopAll, until } from "./processes.mjs";
import { Recorder } from "./recorder.mjs";
import { Schema } from "./schema.mjs";
import { tui } from "./tui.mjs";

const [modules, program, output, ...names] = process.argv.slice(2);
const TOKEN = "compat-0123456789abcdef";
/** Each lane has a gateway of its own, so that the lanes can run at the same time. */
const LANES = [
  {
    agent,
    "agent --model": agentModel,
    "agent --session-id": agentSession,
    "agent commands": agentCommands,
    status,
    health,
    "gateway call": gatewayCall,
    "mcp serve": mcpServe,
    hub,
  },
  { tui, pages },
  { "control ui": controlUi, acp, "gateway probe": gatewayProbe },
];
const EVERYTHING = path.join(modules, "@modelcontextprotocol/server-everything/dist/index.js");

/** Starts our gateway with an MCP server whose tools need approval. */
async function startGateway(home, model) {
  const config = {
    gateway: {
      port: 0,
      auth: { token: TOKEN },
      controlUi: { root: path.join(modules, "openclaw/dist/control-ui") },
    },
    models: { providers: { test: { api: "openai-completions", baseUrl: model, apiKey: "none" } } },
    agents: { defaults: { model: { primary: "test/model", fallbacks: ["test/other"] } } },
    mcp: { servers: { x: { command: process.execPath, args: [EVERYTHING, "stdio"], approval: "always" } } },
  };
  fs.mkdirSync(home, { recursive: true });
  fs.writeFileSync(path.join(home, "openclaw.json"), JSON.stringify(config));
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    OPENCLAW_STATE_DIR: home,
    OPENCLAW_CONFIG_PATH: path.join(home, "openclaw.json"),
  };
  const gateway = new Program(program, ["gateway", "run"], { env });
  const card = path.join(home, "gateway.json");
  let over = false;
  gateway.ended.then(() => (over = true));
  const address = await until("start of the gateway", () => {
    if (over) throw new Error(`the gateway has ended:\n${gateway.output}`);
    try {
      return new URL(JSON.parse(fs.readFileSync(card, "utf8")).url.replace("ws", "http")).host;
    } catch {
      return undefined;
    }
  });
  return { gateway, address };
}

/** Runs the scenarios of a lane one after the other. Returns the number of failures. */
async function runLane(scenarios, folder, schema, unknown) {
  fs.mkdirSync(folder, { recursive: true });
  const model = await startModel();
  const { gateway, address } = await startGateway(path.join(folder, "gateway"), model);
  const recorder = new Recorder(modules, address, schema, unknown);
  const port = await recorder.listen(path.join(folder, "frames.log"));
  const home = path.join(folder, "client");
  const url = `ws://127.0.0.1:${port}`;
  configure(home, url, TOKEN);
  const context = {
    modules,
    node: process.execPath,
    openclaw: path.join(modules, "openclaw/openclaw.mjs"),
    acpx: path.join(modules, "acpx/dist/cli.js"),
    everything: EVERYTHING,
    model,
    program,
    gateway: address,
    url,
    token: TOKEN,
    tool: "mcp_x_echo",
    folder,
    chromium: findChromium(),
    env: {
      PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
      HOME: home,
      OPENCLAW_STATE_DIR: home,
      OPENCLAW_CONFIG_PATH: path.join(home, "openclaw.json"),
      NO_COLOR: "1",
    },
  };
  let failures = 0;
  for (const [name, scenario] of scenarios) {
    const started = Date.now();
    let outcome = "ok";
    try {
      outcome = (await scenario(context)) ?? "ok";
    } catch (error) {
      failures += 1;
      outcome = `FAILED: ${error.message}`;
    }
    console.log(`${name} (${Math.round((Date.now() - started) / 1_000)} s): ${outcome}`);
  }
  gateway.stop("SIGTERM");
  await gateway.exit();
  return failures;
}

/** The methods that docs/compatibility.md lists as refused. */
function refused() {
  const text = fs.readFileSync(new URL("../../docs/compatibility.md", import.meta.url), "utf8");
  const [, section] = text.split("## Methods that are refused");
  return [...section.split("\n## ")[0].matchAll(/^\| `([^`]+)`/gm)].map((row) => row[1]);
}

async function main() {
  fs.rmSync(output, { recursive: true, force: true });
  const known = LANES.flatMap((lane) => Object.keys(lane));
  const mistaken = names.filter((name) => !known.includes(name));
  if (mistaken.length > 0) throw new Error(`unknown scenario: ${mistaken.join(", ")}; known: ${known.join(", ")}`);
  const schema = new Schema(modules);
  const unknown = new Set();
  const lanes = LANES.map((lane) => Object.entries(lane).filter(([name]) => names.length === 0 || names.includes(name)));
  const runs = lanes.filter((lane) => lane.length > 0).map((lane) => {
    return runLane(lane, path.join(output, lane[0][0].replace(" ", "-")), schema, unknown);
  });
  const failures = (await Promise.all(runs)).reduce((sum, it) => sum + it, 0);
  for (const line of schema.report()) console.log(line);
  const surprising = [...unknown].filter((method) => !refused().includes(method));
  if (unknown.size > 0) console.log(`methods that the gateway refuses: ${[...unknown].join(", ")}`);
  if (surprising.length > 0) console.log(`  missing in docs/compatibility.md: ${surprising.join(", ")}`);
  return failures + schema.violations.size + surprising.length;
}

const failures = await main().catch((error) => {
  console.log(error.stack);
  return 1;
});
stopAll();
process.exit(failures === 0 ? 0 : 1);
