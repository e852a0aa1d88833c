// A server with an MCP App, made with the official `@modelcontextprotocol/ext-apps` and the TypeScript SDK 2:
// node apps_server.mjs FOLDER_WITH_NODE_MODULES
//
// It speaks both eras over stdio. `weather` shows a page that is not listed as a resource, `refresh` is only for the
// page, and `forecast` has a page of its own. `declared` returns the extensions that its client declares.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(path.resolve(process.argv[2], "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const { McpServer, ResourceTemplate } = await load("@modelcontextprotocol/server");
const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
const apps = await import(
  pathToFileURL(path.resolve(process.argv[2], "@modelcontextprotocol/ext-apps/dist/src/server/index.js"))
);

const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const WEATHER = "ui://weather/main.html";
const FORECAST = "ui://forecast/main.html";
const icons = [{ src: "data:image/png;base64,AA==", mimeType: "image/png", sizes: ["48x48"] }];
const text = (words) => ({ content: [{ type: "text", text: words }] });

serveStdio(() => {
  const product = new McpServer(
    { name: "weather", version: "1.0.0" },
    { instructions: "Ask for the city first.", capabilities: { extensions: { "io.modelcontextprotocol/ui": {} } } },
  );
  const tool = (name, ui, result) =>
    apps.registerAppTool(
      product,
      name,
      { title: `The ${name}`, description: `Tells the ${name}.`, icons, annotations: { readOnlyHint: true }, _meta: { ui, "example.org/x": 1 } },
      result,
    );
  tool("weather", { resourceUri: WEATHER, visibility: ["model", "app"] }, () => text("sunny"));
  tool("refresh", { resourceUri: WEATHER, visibility: ["app"] }, () => text("refreshed"));
  tool("forecast", { resourceUri: FORECAST }, () => text("rain"));
  product.registerTool("declared", { description: "Tells what the client declares." }, (ctx) => {
    const capabilities = ctx.mcpReq.envelope?.[CAPABILITIES] ?? product.server.getClientCapabilities();
    return text(JSON.stringify(capabilities?.extensions ?? {}));
  });
  const page = (uri) =>
    apps.registerAppResource(product, uri, uri, { description: "A page." }, () => ({
      contents: [
        { uri, mimeType: apps.RESOURCE_MIME_TYPE, text: `<html>${uri}</html>`, _meta: { ui: { csp: { connectDomains: [] } } } },
      ],
    }));
  [WEATHER, FORECAST].forEach(page);
  product.registerResource(
    "notes",
    "notes://today",
    { title: "Today", description: "Notes.", mimeType: "text/plain", size: 5, icons, annotations: { audience: ["user"], priority: 0.5 }, _meta: { "example.org/y": 2 } },
    (uri) => ({ contents: [{ uri: uri.href, mimeType: "text/plain", text: "notes" }] }),
  );
  product.registerResource(
    "day",
    new ResourceTemplate("notes://{day}", { list: undefined }),
    { title: "A day", description: "Notes of a day.", icons, _meta: { "example.org/z": 3 } },
    (uri) => ({ contents: [{ uri: uri.href, text: "notes" }] }),
  );
  product.registerPrompt("plan", { title: "Plan", description: "Plans a day.", icons, _meta: { "example.org/p": 4 } }, () => ({
    messages: [{ role: "user", content: { type: "text", text: "Plan." } }],
  }));
  // Like some servers, it does not list its pages.
  const list = product.server._requestHandlers.get("resources/list");
  product.server.setRequestHandler("resources/list", async (request, ctx) => {
    const listed = await list(request, ctx);
    return { ...listed, resources: listed.resources.filter(({ uri }) => !uri.startsWith("ui://")) };
  });
  return product;
});
