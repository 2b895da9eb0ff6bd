# OpenTelemetry's exporter as an application uses it: an agent that calls a model, a tool and an embedding.

import json
import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

host, key, compression = sys.argv[1:]
provider = TracerProvider(resource=Resource.create({"service.name": "shop", "posthog.distinct_id": "user-1"}))
provider.add_span_processor(
    BatchSpanProcessor(
        OTLPSpanExporter(
            endpoint=f"{host}/i/v0/ai/otel",
            headers={"Authorization": f"Bearer {key}"},
            compression=Compression(compression),
        )
    )
)
tracer = provider.get_tracer("shop.agent", "1.2.3")
question = {"role": "user", "content": "hi 😀"}
answer = {"role": "assistant", "content": "ho", "finish_reason": "stop"}

with tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"}):
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.input.messages": json.dumps([question]),
        "gen_ai.output.messages": json.dumps([answer]),
        "gen_ai.request.stop_sequences": ["a", "b"],
    }
    with tracer.start_as_current_span("chat gpt-5", attributes=chat):
        pass
    with tracer.start_as_current_span("GET /", attributes={"http.request.method": "GET"}):
        pass
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather", "user.id": "user-2"}
    with tracer.start_as_current_span("execute_tool weather", attributes=tool):
        pass
    try:
        with tracer.start_as_current_span("embeddings", attributes={"gen_ai.operation.name": "embeddings"}):
            raise ValueError("HTTP 429")
    except ValueError:
        pass

print(json.dumps(provider.force_flush()))
provider.shutdown()
