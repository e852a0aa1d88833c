// Runs the front ends of the Node OpenClaw (npm `openclaw`) against our gateway. Every frame that the
// gateway sends is checked against the published schema.
//
//   node run.mjs MODULES GATEWAY OUTPUT [NAME...]
import fs from "node:fs";
import path from "node:path";
import { acp, agent, configure, mcpServe, status } from "./commands.mjs";
import { controlUi, findChromium } from "./control-ui.mjs";
import { hub } from "./hub.mjs";
import { startModel } from "./model.mjs";
import { Program, stopAll, until } from "./processes.mjs";
import { Recorder } from "./recorder.mjs";
import { tui } from "./tui.mjs";

const [modules, program, output, ...names] = process.argv.slice(2);
const TOKEN = "compat-0123456789abcdef";
const SCENARIOS = { agent, status, "mcp serve": mcpServe, acp, tui, hub, "control ui": controlUi };
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
    agents: { defaults: { model: { primary: "test/model" } } },
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

async function main() {
  fs.rmSync(output, { recursive: true, force: true });
  fs.mkdirSync(output, { recursive: true });
  const model = await startModel();
  const { gateway, address } = await startGateway(path.join(output, "gateway"), model);
  const recorder = new Recorder(modules, address);
  const port = await recorder.listen(path.join(output, "frames.log"));
  const home = path.join(output, "client");
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
    folder: output,
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
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    if (names.length > 0 && !names.includes(name)) continue;
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
  console.log(`${recorder.frames} frames of the gateway checked, ${recorder.violations.length} violations of the schema`);
  for (const violation of recorder.violations.slice(0, 10)) console.log(`  ${violation}`);
  if (recorder.unknown.size > 0) console.log(`methods that the gateway does not know: ${[...recorder.unknown].join(", ")}`);
  gateway.stop("SIGTERM");
  await gateway.exit();
  return failures + recorder.violations.length;
}

const failures = await main().catch((error) => {
  console.log(error.stack);
  return 1;
});
stopAll();
process.exit(failures === 0 ? 0 : 1);
