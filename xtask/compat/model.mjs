// A model with the API of OpenAI: it answers word by word, and calls a tool when it is told to.
//
//   call TOOL {json}   calls the tool, then reports its result
//   count N            answers with the numbers up to N, slowly
//   which model        answers with the name of the model
//   anything else      is repeated
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const PAUSE_MS = 40;

function textOf(content) {
  if (typeof content === "string") return content;
  return (content ?? []).map((part) => part.text ?? "").join("");
}

/** What to answer to the messages: words, or a tool call. */
function decide({ messages, model }) {
  // The Node gateway adds messages of its own after those of the user and of tools.
  const recent = messages.slice(messages.findLastIndex((it) => it.role === "assistant") + 1);
  const result = recent.find((it) => it.role === "tool");
  if (result) return { words: `The tool answered: ${textOf(result.content)}` };
  const text = textOf(recent.find((it) => it.role === "user")?.content);
  const call = /call (\S+) (\{.*\})/s.exec(text);
  if (call) return { words: "Let me see.", tool: call[1], args: call[2] };
  const count = /count (\d+)/.exec(text);
  if (count) {
    const numbers = Array.from({ length: Number(count[1]) }, (_, at) => `number-${at + 1}`);
    return { words: numbers.join(" ") };
  }
  if (text.includes("which model")) return { words: `This is ${model}` };
  return { words: `You said: ${text}` };
}

async function answer(request, response) {
  let body = "";
  for await (const chunk of request) body += chunk;
  const { words, tool, args } = decide(JSON.parse(body));
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (delta, finish = null) => {
    const choice = { index: 0, delta, finish_reason: finish };
    response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", choices: [choice] })}\n\n`);
  };
  for (const word of words.split(/(?<= )/)) {
    if (response.destroyed) return;
    send({ content: word });
    await sleep(PAUSE_MS);
  }
  if (tool) {
    const id = `call_${Date.now()}`;
    send({ tool_calls: [{ index: 0, id, type: "function", function: { name: tool, arguments: args } }] });
  }
  send({}, tool ? "tool_calls" : "stop");
  const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
  response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", choices: [], usage })}\n\n`);
  response.end("data: [DONE]\n\n");
}

/** Starts the model; returns its base URL. */
export function startModel() {
  const server = http.createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      server.unref();
      resolve(`http://127.0.0.1:${server.address().port}/v1`);
    });
  });
}
