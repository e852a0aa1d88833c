"""Reads an exposition with the official Python client, and prints its samples as JSON."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

parse = {"prometheus": prometheus, "openmetrics": openmetrics}[sys.argv[1]]
families = list(parse(sys.stdin.read()))
json.dump(
    {
        "types": {family.name: family.type for family in families},
        "samples": [
            [sample.name, sample.labels, sample.value]
            for family in families
            for sample in family.samples
        ],
    },
    sys.stdout,
)
