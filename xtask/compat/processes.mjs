// Processes with their output as text, and bounded waits.
import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

/** How long anything may take: the clients need many seconds to start on a busy machine. */
const PATIENCE_MS = 180_000;

const running = new Set();

/** Removes escape sequences of terminals. */
export function plain(text) {
  return text.replace(/\u001b\][^\u0007\u001b]*(\u0007|\u001b\\)|\u001b[\[?=>][0-9;?=>]*[a-zA-Z]?|\u001b[()][A-Z0-9]|\r/g, "");
}

export class Program {
  output = "";
  #mark = 0;

  constructor(command, args, options = {}) {
    this.name = [command, ...args].join(" ");
    this.child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], detached: true, ...options });
    running.add(this);
    this.child.stdout.on("data", (data) => (this.output += data));
    this.child.stderr.on("data", (data) => (this.output += data));
    this.child.stdin.on("error", () => {});
    this.ended = new Promise((resolve) => {
      this.child.on("error", (error) => resolve({ code: null, error }));
      this.child.on("close", (code) => resolve({ code }));
    }).then((end) => {
      running.delete(this);
      return end;
    });
  }

  type(text) {
    this.child.stdin.write(text);
  }

  /** Waits until the output since the last wait matches. Returns the match. */
  async sees(pattern, what = String(pattern)) {
    const deadline = Date.now() + PATIENCE_MS;
    let over = false;
    this.ended.then(() => (over = true));
    for (;;) {
      const text = plain(this.output.slice(this.#mark));
      const match = pattern.exec(text);
      if (match) {
        this.#mark = this.output.length;
        return match;
      }
      if (over || Date.now() > deadline) {
        throw new Error(`${this.name}: no ${what} in the output:\n${text.slice(-3_000)}`);
      }
      await sleep(50);
    }
  }

  /** Waits for the end. Returns the exit code. */
  async exit() {
    const timeout = sleep(PATIENCE_MS, { code: null, error: new Error("timed out") }, { ref: false });
    const { code, error } = await Promise.race([this.ended, timeout]);
    if (error) throw new Error(`${this.name}: ${error.message}\n${plain(this.output).slice(-3_000)}`);
    return code;
  }

  /** Ends the process and those that it started. */
  stop(signal = "SIGKILL") {
    try {
      process.kill(-this.child.pid, signal);
    } catch {
      // It has ended already.
    }
  }
}

/** Ends everything that was started here. */
export function stopAll() {
  for (const program of running) program.stop();
}

/** Repeats until the outcome is not undefined. */
export async function until(what, attempt) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const outcome = await attempt();
    if (outcome !== undefined) return outcome;
    if (Date.now() > deadline) throw new Error(`timed out: ${what}`);
    await sleep(50);
  }
}
