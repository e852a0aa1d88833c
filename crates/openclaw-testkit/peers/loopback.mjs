// Loaded into a Node server before its own code (node --import): whatever address the server requests, it
// listens on 127.0.0.1, on the port in the environment variable PORT or on a free one (0), prints that
// address on a separate line, and exits when its stdin is closed. So a test need not guess a port, opens
// nothing to the network, and leaves nothing behind.
import net from "node:net";

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (...args) {
  this.once("listening", () => {
    process.stdout.write(`http://127.0.0.1:${this.address().port}\n`);
  });
  const callback = args.find((argument) => typeof argument === "function");
  return listen.call(this, { host: "127.0.0.1", port: Number(process.env.PORT ?? 0) }, callback);
};

process.stdin.on("end", () => process.exit()).resume();
