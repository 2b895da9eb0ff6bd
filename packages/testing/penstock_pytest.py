"""pytest fixtures that start Penstock and await stored events.

Copy this file next to your tests, and name it in conftest.py:

    pytest_plugins = ["penstock_pytest"]

A test then uses the fixture `penstock`. The fixture needs Node and the npm package penstock. It
runs `npx penstock`, or the command in the environment variable PENSTOCK_PROGRAM.
"""

import json
import os
import queue
import re
import shlex
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

START_SECONDS_MAX = 30


class Penstock:
    """A running gateway. SDKs need its `url` and its `key`."""

    def __init__(self, admin_url):
        self.admin_url = admin_url
        found = self._call("GET", "")
        self.url = found["url"]
        self.key = found["key"]

    def expect(self, event=None, distinct_id=None, properties=None, timeout=3.0, **members):
        """Waits for an event with these members, and returns the first one.

        Fails after `timeout` seconds. The error message contains the most similar event and the
        events that the gateway rejected.
        """
        named = {"event": event, "distinct_id": distinct_id, "properties": properties, **members}
        expected = {name: value for name, value in named.items() if value is not None}
        asked = {**expected, "timeout_ms": timeout * 1000}
        return self._call("POST", "/expect", asked, timeout + 10)["event"]

    def events(self):
        """Returns all events since the last reset, in the order in which they were stored."""
        return self._call("GET", "/events")["events"]

    def reset(self):
        """Removes all current events from the results of `expect` and `events`."""
        self._call("POST", "/reset")

    def _call(self, method, path, body=None, timeout=10):
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.admin_url + "/testing" + path, data, method=method)
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(asked, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            answer = json.load(error)
            message = answer.get("message") or answer.get("detail")
        # Raised outside `except`, because a traceback with urllib's error would hide the message.
        raise AssertionError(message)


@pytest.fixture(scope="session")
def penstock_gateway():
    program = shlex.split(os.environ.get("PENSTOCK_PROGRAM", "npx penstock"))
    process = subprocess.Popen(
        [*program, "testing", "--json", "--exit-with-stdin"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_host_environment(),
    )
    line = _first_line(process)
    yield Penstock(json.loads(line)["adminUrl"])
    process.stdin.close()
    process.wait(timeout=15)


@pytest.fixture
def penstock(penstock_gateway):
    """The gateway of all tests, without the events of earlier tests."""
    penstock_gateway.reset()
    return penstock_gateway


def _host_environment():
    """Returns the environment without settings of other gateways and flags of Node."""
    removed = re.compile(r"PENSTOCK_(?!NATS_SERVER$)|NODE_OPTIONS$|NODE_V8_COVERAGE$")
    return {name: value for name, value in os.environ.items() if not removed.match(name)}


def _first_line(process):
    lines = queue.SimpleQueue()
    reading = threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True)
    reading.start()
    reading.join(START_SECONDS_MAX)
    if reading.is_alive():
        process.kill()
        # `npx` is killed without the gateway, which ends with its standard input.
        process.stdin.close()
        pytest.fail(f"penstock did not start within {START_SECONDS_MAX} s: see its output")
    line = lines.get()
    if line == "":
        pytest.fail(f"penstock did not start (exit code {process.wait()}): see its output")
    return line
