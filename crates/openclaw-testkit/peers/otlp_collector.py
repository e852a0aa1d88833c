"""A collector of traces and logs: OTLP over HTTP, decoded with the types of the OpenTelemetry project.

Usage: otlp_collector.py FILE

Listens on $PORT of 127.0.0.1, prints its address, and appends a line of JSON to FILE for each request
that it accepts, before it answers: {"headers": {...}, "request": {...}}.
"""

import gzip
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

PROTOBUF = "application/x-protobuf"
TYPES = {
    "/v1/logs": (ExportLogsServiceRequest, ExportLogsServiceResponse),
    "/v1/traces": (ExportTraceServiceRequest, ExportTraceServiceResponse),
}


class Collector(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path not in TYPES or self.headers["content-type"] != PROTOBUF:
            return self.answer(400, b"")
        if self.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        request_type, response_type = TYPES[self.path]
        request = request_type()
        request.ParseFromString(body)
        line = {"headers": dict(self.headers.items()), "request": MessageToDict(request)}
        with open(sys.argv[1], "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.answer(200, response_type().SerializeToString())

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("content-type", PROTOBUF)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Collector)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


main()
