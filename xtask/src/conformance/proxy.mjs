// Adds the gateway's token to the requests of the conformance suite, which cannot send one, and passes everything
// else on as it is: node proxy.mjs URL_OF_THE_HUB < TOKEN
//
// Listens on 127.0.0.1, prints its address as the first line, and exits when its stdin is closed.
import { createServer, request as send } from "node:http";

const target = new URL(process.argv[2]);
let token = "";
process.stdin.setEncoding("utf8").on("data", (text) => (token += text)).on("end", () => process.exit(0));

const proxy = createServer((asked, answer) => {
  const headers = { ...asked.headers, authorization: `Bearer ${token.trim()}` };
  const options = { host: target.hostname, port: target.port, path: target.pathname + target.search, method: asked.method, headers };
  const passed = send(options, (reply) => {
    answer.writeHead(reply.statusCode, reply.headers);
    answer.flushHeaders();
    reply.pipe(answer);
  });
  passed.on("error", () => answer.destroy());
  answer.on("close", () => passed.destroy());
  asked.pipe(passed);
});
proxy.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${proxy.address().port}/mcp`));
