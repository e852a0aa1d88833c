"""An MCP server of 2025-06-18 that returns scripted responses.

The argument is an object with `capabilities` and `answers`, which maps each method to a list of
responses; the last one is repeated. A response has a `result` or an `error`; `tell` is the method
of a notification that is sent before it, `many` returns a list with that many numbers, and `late`
delays the response by that many seconds without blocking others.
"""

import json
import sys
import threading

script = json.loads(sys.argv[1])
asked = {}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer_to(method):
    if method == "initialize":
        about = {"name": "scripted", "version": "0"}
        capabilities = script["capabilities"]
        version = "2025-06-18"
        return {
            "result": {
                "protocolVersion": version,
                "capabilities": capabilities,
                "serverInfo": about,
            }
        }
    unknown = [{"error": {"code": -32601, "message": "unknown"}}]
    answers = script["answers"].get(method, unknown)
    turn = asked.get(method, 0)
    asked[method] = turn + 1
    return dict(answers[min(turn, len(answers) - 1)])


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    answer = answer_to(request["method"])
    if "tell" in answer:
        send({"method": answer.pop("tell")})
    if "many" in answer:
        answer = {"result": {"tools": [1] * answer["many"], "nextCursor": "more"}}
    late = answer.pop("late", None)
    answer = {"id": request["id"], **answer}
    if late is None:
        send(answer)
    else:
        threading.Timer(late, send, [answer]).start()
