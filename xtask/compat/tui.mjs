// `openclaw tui` in a pseudo-terminal.
import { setTimeout as sleep } from "node:timers/promises";
import { Program } from "./processes.mjs";

const ENTER = "\r";
const UP = "\u001b[A";
const DOWN = "\u001b[B";
const ESCAPE = "\u001b";

/** Text that can be searched for in the output of a terminal. */
const literal = (text) => new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));

export async function tui({ openclaw, node, env, url, token, tool }) {
  const command = `stty cols 110 rows 40; exec '${node}' '${openclaw}' tui --url ${url} --token ${token}`;
  const tui = new Program("script", ["-qfec", command, "/dev/null"], { env: { ...env, TERM: "xterm-256color" } });
  // Keys that arrive together are taken for pasted text.
  const press = async (...keys) => {
    for (const key of keys) {
      tui.type(key);
      await sleep(300);
    }
  };
  const say = async (text) => {
    tui.type(text);
    await tui.sees(literal(text.slice(0, 12)), `echo of ${text}`);
    await press("", ENTER);
  };
  await tui.sees(/connected/i, "connection");
  await say("count 60");
  await tui.sees(/number-3\b(?!.*number-60)/s, "part of the answer before its end");
  await tui.sees(/number-60/, "end of the answer");
  await say(`call ${tool} {"message":"from the TUI"}`);
  await tui.sees(/Allow once/, "request for approval");
  // "Deny" is selected at first.
  await press(UP, ENTER);
  await tui.sees(/Echo: from the TUI/, "result of the tool");
  await say("count 2000");
  await tui.sees(/number-5\b/, "answer that will be aborted");
  tui.type(ESCAPE);
  await tui.sees(/abort/i, "abort");
  await say("/model test/model");
  await tui.sees(/model set to test\/model/, "choice of a model");
  await say("/model");
  await tui.sees(/test\/model.*test\/other/s, "list of models");
  await press(DOWN, ENTER);
  await tui.sees(/model set to test\/other/, "choice in the list");
  await say("/status");
  await tui.sees(/Session: agent:main:main/, "answer to /status");
  await say("/bash ls");
  await tui.sees(/is not supported by this gateway/, "answer to a command that does not exist here");
  await say("/reset");
  await tui.sees(/session agent:main:main/, "session that begins anew");
  await say("good afternoon");
  await tui.sees(/You said: good afternoon/, "answer after the reset");
  await say("/new");
  await tui.sees(/new session: agent:main:tui-/, "new session");
  await say("good evening");
  await tui.sees(/You said: good evening/, "answer in the new session");
  tui.stop();
}
