# SPDX-License-Identifier: Apache-2.0
"""Let schemathesis try the API of a real server: ``python tests/api_check.py [examples]``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

from serving import serving

# What is refused with: as schemathesis expects, and where a body is too large for its limit.
_CONFIG = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]
"""
_CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,"
_CHECKS += "response_headers_conformance,response_schema_conformance,negative_data_rejection"


def main() -> int:
    """Run it; return its exit code."""
    examples = sys.argv[1] if len(sys.argv) > 1 else "15"
    tool = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    if tool is None:
        print("skipped: api-check, as schemathesis cannot be found")
        return 0
    with (
        serving(define={"segments": {}}) as server,
        NamedTemporaryFile("w", suffix=".toml") as file,
    ):
        file.write(_CONFIG)
        file.flush()
        url = f"http://127.0.0.1:{server.port}/openapi.json"
        options = ["--checks", _CHECKS, "--max-examples", examples, "--seed", "17"]
        done = subprocess.run(
            [
                tool,
                "--config-file",
                file.name,
                "run",
                url,
                *options,
                "--phases",
                "coverage,fuzzing",
                "--no-color",
                "--exclude-path",
                "/v1/points/{point}/events",
                "--exclude-path",
                "/v1/stream",  # which has no end
            ],
            timeout=120,
        )
        failed = [line for line in server.lines if line.get("level") == "error"]
        assert [] == failed[:3]
        assert 200 == server.ask("GET", "/readyz")[0]
        assert 0 == server.stop()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
