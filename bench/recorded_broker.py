"""A broker that gives one recorded metadata answer to every client, in a process of its own."""

from __future__ import annotations

import multiprocessing
import socketserver
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

METADATA = 3
API_VERSIONS = 18


class _Conversation(socketserver.StreamRequestHandler):
    """Answers ApiVersions and Metadata, one request after another."""

    def handle(self) -> None:
        while head := self.rfile.read(4):
            request = self.rfile.read(struct.unpack(">i", head)[0])
            key, version, correlation = struct.unpack_from(">hhi", request)
            answer = struct.pack(">i", correlation) + self.server.answers[key](version)  # type: ignore[attr-defined]
            self.wfile.write(struct.pack(">i", len(answer)) + answer)


def _versions(metadata_version: int) -> Callable[[int], bytes]:
    def answer(version: int) -> bytes:
        ranges = [(METADATA, metadata_version), (API_VERSIONS, version)]
        keys: list[Any] = [
            ApiVersionsResponse.ApiVersion(api_key=k, min_version=0, max_version=most) for k, most in ranges
        ]
        response = ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0, version=version)
        return bytes(response.encode(version=version))

    return answer


def blank_metadata(version: int) -> bytes:
    """What a broker answers that has just started, before the controller has told it of the cluster."""
    response = MetadataResponse(
        throttle_time_ms=0, brokers=[], cluster_id="bench", controller_id=-1, topics=[], version=version
    )
    return bytes(response.encode(version=version))


@contextmanager
def recorded_broker(make: Callable[[int], bytes], metadata_version: int, *, blank: Path | None = None) -> Iterator[str]:
    """``host:port`` of a broker whose metadata answer is what ``make`` gives for its port, or none once ``blank`` exists."""
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Conversation) as server:
        port = server.server_address[1]

        def serve() -> None:
            # The header of a flexible response ends with a count of tagged fields.
            whole, empty = b"\0" + make(port), b"\0" + blank_metadata(metadata_version)

            def metadata(_: int) -> bytes:
                return empty if blank is not None and blank.exists() else whole

            server.answers = {METADATA: metadata, API_VERSIONS: _versions(metadata_version)}  # type: ignore[attr-defined]
            server.serve_forever()

        process = multiprocessing.get_context("fork").Process(target=serve, daemon=True)
        process.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.join()
