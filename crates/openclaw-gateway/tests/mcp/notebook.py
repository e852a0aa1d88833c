"""An MCP server of 2025-06-18 with one resource, which sends change notifications.

Its argument is a file: a line is appended to it for each read. The tool `touch` changes the resource.
"""

import json
import sys

READINGS = sys.argv[1]
URI = "note://today"
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "resources": {"subscribe": True}},
        "serverInfo": {"name": "notebook", "version": "0"},
    },
    "tools/list": {"tools": [{"name": "touch", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
    "resources/list": {"resources": [{"name": "today", "uri": URI}]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/subscribe": {},
    "resources/read": {"contents": [{"uri": URI, "text": "buy milk"}]},
    "ping": {},
}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    method = request["method"]
    if method == "resources/read":
        with open(READINGS, "a", encoding="utf-8") as readings:
            readings.write("read\n")
    if method == "tools/call":
        send({"method": "notifications/resources/updated", "params": {"uri": URI}})
    if method in RESULTS:
        send({"id": request["id"], "result": RESULTS[method]})
    else:
        send({"id": request["id"], "error": {"code": -32601, "message": "unknown"}})
