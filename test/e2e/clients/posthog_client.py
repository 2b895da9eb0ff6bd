# PostHog's Python client as its users call it. Prints what it captured, and each error it reports, as JSON, one per line.

import json
import sys
from datetime import datetime, timezone

from posthog import Posthog

host, key, scenario, *options = sys.argv[1:]


def say(**what):
    print(json.dumps(what), flush=True)


client = Posthog(
    key,
    host=host,
    on_error=lambda error, batch: say(error=str(error)),
    **{name: value or True for name, _, value in (option.partition("=") for option in options)},
)

if scenario == "all":
    when = datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=timezone.utc)
    say(
        uuid=client.capture(
            "signed up",
            distinct_id="user-1",
            properties={"plan": "pro", "ünï": ["😀", 1.5, None]},
            timestamp=when,
        )
    )
    say(uuid=client.capture("paid", distinct_id="user-1", groups={"company": "acme"}))
    say(uuid=client.set(distinct_id="user-1", properties={"email": "a@example.com"}))
    say(uuid=client.set_once(distinct_id="user-1", properties={"first_seen": "2026-01-01"}))
    say(uuid=client.group_identify("company", "acme", {"seats": 5}))
    say(uuid=client.alias("anonymous-1", "user-1"))
else:
    for index in range(int(scenario)):
        say(uuid=client.capture("counted", distinct_id=f"user-{index}", properties={"index": index}))

client.flush(timeout_seconds=None)
client.shutdown()
