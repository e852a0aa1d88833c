// The Node OpenClaw as a client of our hub: over stdio its agent calls a tool, over HTTP it lists the tools.
import fs from "node:fs";
import path from "node:path";
import { Program, plain } from "./processes.mjs";

/** Writes a configuration into a folder of its own. Returns its path. */
function write(folder, name, config) {
  fs.mkdirSync(path.join(folder, name), { recursive: true });
  const file = path.join(folder, name, "openclaw.json");
  fs.writeFileSync(file, JSON.stringify(config));
  return file;
}

async function run({ node, openclaw, env }, home, args) {
  const own = { ...env, HOME: home, OPENCLAW_STATE_DIR: home, OPENCLAW_CONFIG_PATH: path.join(home, "openclaw.json") };
  const program = new Program(node, [openclaw, ...args], { env: own });
  program.child.stdin.end();
  const code = await program.exit();
  if (code !== 0) throw new Error(`${args.join(" ")} failed:\n${plain(program.output).slice(-3_000)}`);
  return plain(program.output);
}

export async function hub(context) {
  const { node, everything, folder, model, program, gateway, token } = context;
  const server = { command: node, args: [everything, "stdio"], approval: "never" };
  const behind = write(folder, "hub", { mcp: { servers: { x: server } } });
  // By default, 1.5 s for the list of tools: too short for a busy machine.
  const patience = { connectionTimeoutMs: 60_000, requestTimeoutMs: 60_000 };
  const provider = {
    baseUrl: model,
    apiKey: "none",
    api: "openai-completions",
    models: [{ id: "model", name: "model", reasoning: false, input: ["text"], contextWindow: 128_000, maxTokens: 4_096 }],
  };
  const home = path.dirname(
    write(folder, "hub-client", {
      agents: { defaults: { model: { primary: "test/model" }, workspace: path.join(folder, "hub-workspace") } },
      models: { mode: "merge", providers: { test: provider } },
      tools: { toolSearch: false },
      mcp: {
        servers: {
          lines: {
            command: program,
            args: ["--config", behind, "mcp-server", "--hub"],
            env: { OPENCLAW_STATE_DIR: path.join(folder, "hub") },
            ...patience,
          },
          http: {
            url: `http://${gateway}/mcp`,
            transport: "streamable-http",
            headers: { Authorization: `Bearer ${token}` },
            ...patience,
          },
        },
      },
    }),
  );
  const probed = await run(context, home, ["mcp", "probe"]);
  for (const name of ["lines", "http"]) {
    const found = new RegExp(`- ${name}: (\\d+) tools, resources, prompts`).exec(probed);
    if (!found || Number(found[1]) < 5) throw new Error(`no tools of \`${name}\`:\n${probed}`);
  }
  const message = 'call lines__echo {"message":"through the hub"}';
  const answer = await run(context, home, ["agent", "--local", "--agent", "main", "--message", message]);
  if (!/The tool answered:.*Echo: through the hub/s.test(answer)) throw new Error(`no result of the tool:\n${answer.slice(-3_000)}`);
}
