// The commands of the Node OpenClaw that use a gateway.
import fs from "node:fs";
import path from "node:path";
import { Program, plain, until } from "./processes.mjs";

function expect(condition, what, output) {
  if (!condition) throw new Error(`${what}:\n${plain(output).slice(-3_000)}`);
}

export async function agent({ node, openclaw, env, folder }) {
  const program = new Program(node, [openclaw, "agent", "--agent", "main", "--message", "good morning"], { env });
  const code = await program.exit();
  expect(code === 0 && program.output.includes("You said: good morning"), "no answer", program.output);
  const frames = fs.readFileSync(path.join(folder, "frames.log"), "utf8");
  expect(/"status":"accepted".*"status":"ok"/s.test(frames), "not accepted first", frames);
}

/** Says something in a session with this id. Returns the output. */
async function sayIn(id, message, { node, openclaw, env }) {
  const program = new Program(node, [openclaw, "agent", "--session-id", id, "--message", message], { env });
  const code = await program.exit();
  expect(code === 0, `no answer to ${message}`, program.output);
  return plain(program.output);
}

export async function agentSession(context) {
  const first = await sayIn("compat-new", "good night", context);
  expect(first.includes("You said: good night"), "no answer in a new session", first);
  const session = await sayIn("compat-new", "/status", context);
  expect(session.includes("Session: agent:main:explicit:compat-new"), "not the session", session);
}

export async function agentCommands(context) {
  for (const [command, expected] of [
    ["/status", /Model: test\/model/],
    ["/help", /\/compact/],
    ["/think high", /`\/think` is not supported by this gateway/],
    ["/verbose on", /`\/verbose` is not supported by this gateway/],
    ["/model test/other", /Model: test\/other/],
    ["/new", /The session begins anew/],
  ]) {
    const output = await sayIn("compat-commands", command, context);
    expect(expected.test(output), `wrong answer to ${command}`, output);
    expect(!output.includes("You said"), `${command} was sent to the model`, output);
  }
}

export async function agentModel({ node, openclaw, env }) {
  const message = ["--message", "which model is this?", "--json"];
  const program = new Program(node, [openclaw, "agent", "--agent", "main", "--model", "test/other", ...message], { env });
  const code = await program.exit();
  expect(code === 0 && program.output.includes("This is other"), "not the model", program.output);
}

export async function status({ node, openclaw, env }) {
  const program = new Program(node, [openclaw, "status"], { env });
  const code = await program.exit();
  expect(code === 0 && /reachable/.test(program.output), "no status", program.output);
  expect(!/unreachable|unknown method/.test(program.output), "gateway not reachable", program.output);
}

export async function health({ node, openclaw, env }) {
  const program = new Program(node, [openclaw, "health", "--json"], { env });
  const code = await program.exit();
  expect(code === 0 && /"ok": true/.test(program.output), "no health", program.output);
}

export async function gatewayCall({ node, openclaw, env }) {
  const call = [openclaw, "gateway", "call", "sessions.list", "--params", '{"limit":5}', "--json"];
  const program = new Program(node, call, { env });
  const code = await program.exit();
  expect(code === 0 && program.output.includes('"agent:main:main"'), "no list of sessions", program.output);
}

export async function gatewayProbe({ node, openclaw, env }) {
  const program = new Program(node, [openclaw, "gateway", "probe", "--json"], { env });
  const code = await program.exit();
  expect(code === 0 && /"ok": true/.test(program.output), "no probe", program.output);
}

export async function acp({ node, openclaw, acpx, env, folder, tool }) {
  const prompt = `call ${tool} {"message":"from the editor"}`;
  const args = [acpx, "--agent", `${node} ${openclaw} acp`, "--approve-all", "--cwd", folder];
  const program = new Program(node, [...args, "--format", "json", "--json-strict", "exec", prompt], { env });
  await program.exit();
  const { output } = program;
  expect(/"sessionUpdate":"tool_call"/.test(output), "no tool call", output);
  expect(/"sessionUpdate":"tool_call_update".*Echo: from the editor/.test(output), "no result of the tool", output);
  const chunks = output.match(/"sessionUpdate":"agent_message_chunk"/g) ?? [];
  expect(chunks.length > 2, `${chunks.length} chunks of text`, output);
  expect(output.includes("end_turn"), "no end of the turn", output);
}

export async function mcpServe({ node, openclaw, env }) {
  const program = new Program(node, [openclaw, "mcp", "serve"], { env });
  let id = 0;
  const ask = async (method, params) => {
    id += 1;
    const mine = id;
    program.type(`${JSON.stringify({ jsonrpc: "2.0", id: mine, method, params })}\n`);
    return await until(`${method} of mcp serve`, () => {
      const lines = program.output.split("\n").filter((line) => line.startsWith("{"));
      const answers = lines.flatMap((line) => {
        try {
          return [JSON.parse(line)];
        } catch {
          return [];
        }
      });
      return answers.find((answer) => answer.id === mine);
    });
  };
  const clientInfo = { name: "compat", version: "1" };
  await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  program.type(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  const list = await ask("tools/call", { name: "conversations_list", arguments: {} });
  const conversation = list.result?.structuredContent?.conversations?.find((it) => it.sessionKey === "agent:main:main");
  expect(conversation?.derivedTitle === "good morning", "no conversation", JSON.stringify(list));
  expect(conversation.lastMessagePreview?.length > 0, "no last message", JSON.stringify(list));
  const session = { session_key: conversation.sessionKey };
  const got = await ask("tools/call", { name: "conversation_get", arguments: session });
  expect(got.result?.structuredContent?.conversation?.to === conversation.to, "not found", JSON.stringify(got));
  const read = await ask("tools/call", { name: "messages_read", arguments: session });
  const messages = JSON.stringify(read.result ?? read.error);
  expect(messages.includes("good morning"), "no message read", messages);
  program.stop();
}

/** Writes the client's configuration: a gateway elsewhere. */
export function configure(home, url, token) {
  fs.mkdirSync(home, { recursive: true });
  const config = { gateway: { mode: "remote", remote: { url, token } } };
  fs.writeFileSync(path.join(home, "openclaw.json"), JSON.stringify(config));
}
