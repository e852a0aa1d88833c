// The web Control UI in headless Chromium.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import path from "node:path";

const LONG = { timeout: 120_000 };

/** Returns the path of an installed Chromium. */
export function findChromium() {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // Not this one.
    }
  }
  return undefined;
}

/** Opens the Control UI, with the token. */
export async function open({ modules, chromium, url, token }) {
  const { chromium: driver } = createRequire(`${modules}/x.js`)("playwright-core");
  const browser = await driver.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(LONG.timeout);
  await page.goto(`${url.replace("ws", "http")}/chat#token=${token}`);
  return { browser, page };
}

export async function controlUi({ modules, chromium, url, token, tool, folder }) {
  if (!chromium) return "SKIPPED: no Chromium found (on Debian: apt-get install chromium)";
  const { browser, page } = await open({ modules, chromium, url, token });
  try {
    const shot = (name) => page.screenshot({ path: path.join(folder, `control-ui-${name}.png`) });
    const input = page.getByPlaceholder(/^Message/).first();
    const says = (text) => page.getByText(text).last().waitFor(LONG);
    const say = async (text) => {
      await input.fill(text);
      await input.press("Enter");
    };
    await input.waitFor(LONG);
    await shot("1-connected");
    try {
      await say("the first message");
      await says("You said: the first message");
      await say(`call ${tool} {"message":"from the browser"}`);
      await page.getByRole("button", { name: /allow once/i }).first().click(LONG);
      await says("The tool answered");
      await shot("2-tool");
      await say("the third message");
      await says("You said: the third message");
      await say("count 2000");
      await says("number-5 ");
      await page.getByRole("button", { name: /stop/i }).first().click(LONG);
      await page.reload();
      await says("You said: the third message");
      await say("after the reload");
      await says("You said: after the reload");
    } finally {
      await shot("3-end");
    }
    return undefined;
  } finally {
    await browser.close();
  }
}
