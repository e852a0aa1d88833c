// Every page of the Control UI: it opens without an error.
import path from "node:path";
import { open } from "./control-ui.mjs";

const PAGES = `/sessions /usage /tasks /skills /skills/workshop /plugins /portals /meetings /logs /debug /dashboards
  /dashboard /worktrees /workboard /terminal /systems /memory-import /agents /cron /nodes /channels /activity /new
  /settings/updates /settings/talk /settings/skills /settings/security /settings/secrets /settings/search
  /settings/profile /settings/plugins /settings/notifications /settings/model-providers /settings/memory /settings/mcp
  /settings/lobsterdex /settings/labs /settings/infrastructure /settings/devices /settings/device
  /settings/device/permissions /settings/connection /settings/communications /settings/cloud-workers
  /settings/channels /settings/automation /settings/approvals /settings/appearance /settings/ai-agents
  /settings/agents /settings/advanced /settings/about /chat`.split(/\s+/);
/** How long a page may still ask the gateway for something. */
const SETTLE_MS = 700;

/** Returns the texts of visible error messages, also in shadow roots. Runs in the page. */
function banners() {
  const found = new Set();
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot) walk(element.shadowRoot);
      const isBanner = element.getAttribute("role") === "alert" || /danger|error/.test(element.getAttribute("class") ?? "");
      const text = isBanner && element.offsetParent !== null ? element.innerText?.trim() : "";
      if (/unknown method|fail|invalid|could not|cannot/i.test(text)) found.add(text.replace(/\s+/g, " ").slice(0, 200));
    }
  };
  walk(document);
  return [...found];
}

export async function pages({ modules, chromium, url, token, folder }) {
  if (!chromium) return "SKIPPED: no Chromium found (on Debian: apt-get install chromium)";
  const { browser, page } = await open({ modules, chromium, url, token });
  const problems = [];
  try {
    let at = "/chat";
    page.on("pageerror", (error) => problems.push(`${at}: ${error}`));
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(`${at}: ${message.text().slice(0, 200)}`);
    });
    await page.getByPlaceholder(/^Message/).first().waitFor();
    for (at of PAGES) {
      // As a link of the page does it: without loading the scripts again.
      await page.evaluate((address) => {
        history.pushState({}, "", address);
        dispatchEvent(new PopStateEvent("popstate"));
      }, at);
      await page.waitForTimeout(SETTLE_MS);
      const shown = new URL(page.url()).pathname;
      if (!shown.startsWith(at)) problems.push(`${at}: ended at ${shown}`);
      problems.push(...(await page.evaluate(banners)).map((text) => `${at}: ${text}`));
      await page.screenshot({ path: path.join(folder, `page${at.replaceAll("/", "-")}.png`) });
    }
  } finally {
    await browser.close();
  }
  if (problems.length > 0) throw new Error(`pages with errors:\n${[...new Set(problems)].join("\n")}`);
  return `ok: ${PAGES.length} pages`;
}
