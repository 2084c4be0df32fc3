# SPDX-License-Identifier: Apache-2.0
"""The process: sockets, signals, the minute's tick, snapshots, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvicorn

from limen.service.http.api import TABLE
from limen.service.http.app import App, log_line, place_of
from limen.service.http.browser import files
from limen.service.http.guard import guarded, sweep
from limen.service.http.meters import Meters
from limen.service.http.stream import Hub
from limen.service.http.webhooks import Sender
from limen.service.log import snapshots
from limen.service.log.alerts import Watch
from limen.service.log.writer import Writer
from limen.service.settings import Settings
from limen.times import length_of

__all__ = ["control_path", "serve"]

_OTHER_FILES = 128  # besides connections: the log, the control socket, webhooks
_LONGEST_PATH = 100  # bytes of the path of a socket; systems allow 104 to 108


def control_path(folder: Path) -> Path:
    """Return where the socket of the running server is."""
    return folder / "control.sock"


def write(line: dict[str, Any]) -> None:
    """Write one line of the log to standard error."""
    with suppress(OSError, ValueError):
        print(log_line(line), file=sys.stderr, flush=True)


class _Lines(logging.Handler):
    """What uvicorn has to say, in lines like all others, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage().strip()
        if record.exc_info and record.exc_info[1] is not None:
            message += f": {place_of(record.exc_info[1])}"
        write({"level": record.levelname.lower(), "message": message})


def serve(settings: Settings) -> None:
    """Run the server until it is stopped."""
    logger = logging.getLogger("uvicorn.error")
    logger.handlers, logger.propagate = [_Lines(logging.WARNING)], False
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(settings))


def _loop_factory() -> Any:
    try:
        import uvloop
    except ImportError:  # not on Windows
        return asyncio.new_event_loop
    return uvloop.new_event_loop


async def _serve(settings: Settings) -> None:
    folder = Path(settings.data)
    for name in ("cert", "key"):
        path = getattr(settings, name)
        if path is not None and not Path(path).is_file():
            raise ValueError(f"{name}: there is no file {path!r}.")
    begun = time.perf_counter()
    writer = Writer(
        folder,
        lambda message: write({"level": "warning", "message": message}),
        settings.clock_ahead,
    )
    try:
        writer.clock.require_present(writer.state.at)
        if not settings.open and not writer.state.tokens:
            raise ValueError(
                "a server that other machines can reach needs a token. Make one first: "
                f"limen serve token add NAME --scope score --data {folder}"
            )
        writer.try_disk()
        _allow_files(settings)
        meters = Meters()
        app = App(writer, settings, meters, write)
        app.routes((*TABLE, *files()))
        app.hub = hub = Hub(writer, settings.most_listeners)
        config = uvicorn.Config(
            app,
            http=guarded(settings),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=settings.keep_alive_seconds,
            timeout_graceful_shutdown=settings.stop_seconds,
            ssl_certfile=settings.cert,
            ssl_keyfile=settings.key,
            backlog=2048,
        )
        config.load()
        server = uvicorn.Server(config)

        loop = asyncio.get_running_loop()

        def leave(number: int) -> None:
            hub.stop()
            server.handle_exit(number, None)

        def stop(number: int) -> None:
            drains = app.ready and number == signal.SIGTERM  # a second signal ends the grace
            app.ready = False
            if drains and settings.drain_seconds:
                loop.call_later(settings.drain_seconds, leave, number)
            else:
                leave(number)

        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, stop, each)
        sockets = [_listening(settings), _control(folder)]
        host, port = sockets[0].getsockname()[:2]
        host = f"[{host}]" if ":" in host else host
        write(
            {
                "level": "info",
                "message": "ready",
                "address": f"{'https' if settings.cert else 'http'}://{host}:{port}",
                "seq": writer.on_disk,
                "seconds": round(time.perf_counter() - begun, 3),
            }
        )
        watch = Watch(writer, app.accounts, settings.disk_low)
        chores = [
            asyncio.create_task(sweep(server.server_state.connections)),
            asyncio.create_task(_tick(writer, settings, watch)),
            asyncio.create_task(_snapshots(writer, settings)),
            asyncio.create_task(_cut(writer)),
            asyncio.create_task(hub.run()),
            *(asyncio.create_task(Sender(writer, hook, write).run()) for hook in settings.webhooks),
        ]
        try:
            await server._serve(sockets)  # serve() would send the signal to itself again
        finally:
            for chore in chores:
                chore.cancel()
            await asyncio.gather(*chores, return_exceptions=True)
            control_path(folder).unlink(missing_ok=True)
    finally:
        await writer.close()
        write({"level": "info", "message": "stopped", "seq": writer.on_disk})


def _listening(settings: Settings) -> socket.socket:
    host, port = settings.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {settings.bind}: {error.strerror}") from None
    listening.listen(2048)
    listening.setblocking(False)
    return listening


def _control(folder: Path) -> socket.socket:
    path = control_path(folder)
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise ValueError(
            f"the path of the data directory is too long for a socket ({path}). Use a shorter one, "
            "or a relative one."
        )
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o177)
    try:
        listening.bind(str(path))
    finally:
        os.umask(mask)
    listening.listen(2048)
    listening.setblocking(False)
    return listening


def _allow_files(settings: Settings) -> None:
    """Let as many files be open as there may be connections, or take fewer connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.most_connections + _OTHER_FILES
    if resource.RLIM_INFINITY != soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if resource.RLIM_INFINITY != soft < wanted:
        settings.most_connections = max(1, soft - _OTHER_FILES)
        text = f"at most {settings.most_connections} connections: {soft} files may be open"
        write({"level": "warning", "message": text})


async def _tick(writer: Writer, settings: Settings, watch: Watch) -> None:
    seconds = length_of(settings.tick) / 1e6
    while True:
        await asyncio.sleep(seconds)
        try:
            await writer.tick()
            await watch.look()
        except Exception as error:
            write({"level": "error", "message": f"tick: {type(error).__name__}: {error}"})


async def _snapshots(writer: Writer, settings: Settings) -> None:
    """Make snapshots, by number of events, by time and after a forget; then delete what is old."""
    every, then = length_of(settings.snapshot_every) / 1e6, time.monotonic()
    while True:
        await asyncio.sleep(1)
        newest = next((seq for seq, _ in snapshots.stored(writer.folder)), 0)
        new = writer.on_disk - newest
        due = new >= settings.snapshot_events or (new and time.monotonic() - then >= every)
        if not due and "snapshots" not in writer.left_in(writer.on_disk):
            continue
        then = time.monotonic()
        try:
            await _snapshot(writer)
            if settings.retention is not None:
                await _delete_old(writer, length_of(settings.retention))
        except Exception as error:  # a full disk, most often; the next one may succeed
            write({"level": "error", "message": f"snapshot: {type(error).__name__}: {error}"})
            await asyncio.sleep(60)


async def _cut(writer: Writer) -> None:
    """Once a second, try again to delete what a reader kept in the WAL."""
    while True:
        await asyncio.sleep(1)
        try:
            await writer.cut()
        except Exception as error:
            write({"level": "error", "message": f"cut: {place_of(error)}"})


async def _snapshot(writer: Writer) -> None:
    """Let a process of its own make a snapshot."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "limen", "serve", "snapshot", "--data", str(writer.folder),
        stdin=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        code = await child.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            child.kill()
        raise
    if code != 0:
        raise RuntimeError(f"the process ended with {code}")


async def _delete_old(writer: Writer, age: int) -> None:
    """Delete events that are old and in every snapshot, none of which needs older ones."""
    kept = [seq for seq, _ in snapshots.stored(writer.folder)]
    if kept and min(kept) >= writer.state.refolded:
        upto = await asyncio.get_running_loop().run_in_executor(
            writer._thread, writer.log.delete_until, min(kept), writer.now() - age
        )
        write({"level": "info", "message": "retention", "deleted_until": upto})
