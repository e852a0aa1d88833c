// `openclaw tui` in a pseudo-terminal.
import { Program } from "./processes.mjs";

const ENTER = "\r";
const UP = "\u001b[A";
const ESCAPE = "\u001b";

export async function tui({ openclaw, node, env, url, token, tool }) {
  const command = `stty cols 110 rows 40; exec '${node}' '${openclaw}' tui --url ${url} --token ${token}`;
  const tui = new Program("script", ["-qfec", command, "/dev/null"], { env: { ...env, TERM: "xterm-256color" } });
  const say = async (text) => {
    tui.type(text);
    await new Promise((resolve) => setTimeout(resolve, 300));
    tui.type(ENTER);
  };
  await tui.sees(/connected/i, "connection");
  await say("count 40");
  await tui.sees(/number-3\b(?!.*number-40)/s, "part of the answer before its end");
  await tui.sees(/number-40/, "end of the answer");
  await say(`call ${tool} {"message":"from the TUI"}`);
  await tui.sees(/Allow once/, "request for approval");
  // "Deny" is selected at first.
  for (const key of [UP, ENTER]) {
    tui.type(key);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  await tui.sees(/Echo: from the TUI/, "result of the tool");
  await say("count 2000");
  await tui.sees(/number-5\b/, "answer that will be aborted");
  tui.type(ESCAPE);
  await tui.sees(/abort/i, "abort");
  await say("/new");
  await tui.sees(/new session|session.*(tui|created)/i, "new session");
  await say("good evening");
  await tui.sees(/You said: good evening/, "answer in the new session");
  await say("/model");
  await tui.sees(/test\/model/, "list of models");
  tui.stop();
}
