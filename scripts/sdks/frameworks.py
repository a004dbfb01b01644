"""Checks the simulator with more SDKs and frameworks. Run by scripts/sdk with the simulator's URL."""

import asyncio
import json
import os
import sys

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import anthropic
import boto3
import cohere
import litellm
import ollama
import openai
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from mistralai.client import Mistral
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

URL = sys.argv[1]
PASSED = []
LOOP = "sim: tool-loop 2"
DONE = "Steps with tools in this turn: 2."

WEATHER = {
    "type": "object",
    "properties": {"place": {"$ref": "#/$defs/Place"}, "unit": {"type": "string", "enum": ["c", "f"]}},
    "required": ["place", "unit"],
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "description": "w", "parameters": WEATHER}}


def check(run):
    """Runs one check, named after what it verifies. The first failure ends the run."""
    run()
    PASSED.append(run.__name__)
    print(f"ok  {run.__name__.replace('_', ' ')}", flush=True)


def fits(arguments):
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert arguments["place"]["city"] and arguments["unit"] in ["c", "f"], arguments


@check
def openai_finds_models_and_continues_a_stored_response():
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="any", max_retries=0)
    assert "deepseek" in [model.id for model in client.models.list()]
    assert client.models.retrieve("gpt-5.6").id == "gpt-5.6"
    tools = [{"type": "function", "name": "weather", "description": "w", "parameters": WEATHER, "strict": False}]
    reply = client.responses.create(model="gpt-5.6", input=LOOP, tools=tools)
    for _ in range(2):
        calls = [item for item in reply.output if item.type == "function_call"]
        fits(calls[0].arguments)
        results = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
        reply = client.responses.create(model="gpt-5.6", input=results, tools=tools, previous_response_id=reply.id)
    assert DONE in reply.output_text, reply.output_text
    assert reply.usage.input_tokens_details.cached_tokens == 0
    assert client.responses.retrieve(reply.id).id == reply.id
    assert len(list(client.responses.input_items.list(reply.id))) > 4
    client.responses.delete(reply.id)
    try:
        client.responses.retrieve(reply.id)
    except openai.NotFoundError:
        return
    raise AssertionError("a deleted response was found")


@check
def anthropic_counts_tokens_lists_models_and_runs_its_tool_runner():
    client = anthropic.Anthropic(base_url=URL, api_key="any", max_retries=0)
    messages = [{"role": "user", "content": LOOP}]
    assert client.messages.count_tokens(model="claude-sonnet-5", messages=messages).input_tokens > 0
    assert "claude-sonnet-5" in [model.id for model in client.models.list()]
    assert client.models.retrieve("claude-sonnet-5").id == "claude-sonnet-5"

    @anthropic.beta_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return "sunny"

    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-5", max_tokens=4096, tools=[weather], messages=messages,
    )
    final = runner.until_done()
    assert DONE in final.content[-1].text, final


@check
def mistral_streams_thinking_and_whole_calls():
    client = Mistral(api_key="any", server_url=URL)
    assert "mistral" in [model.id for model in client.models.list().data]
    messages = [{"role": "user", "content": LOOP}]
    for _ in range(2):
        calls, content = [], []
        for event in client.chat.stream(model="magistral-medium-latest", messages=messages, tools=[CHAT_TOOL]):
            delta = event.data.choices[0].delta
            calls += delta.tool_calls or []
            content += delta.content if isinstance(delta.content, list) else []
        assert len(calls) == 1 and any(part.type == "thinking" for part in content), (calls, content)
        fits(calls[0].function.arguments)
        chunks = [part.model_dump(exclude_none=True) for part in content]
        messages.append({"role": "assistant", "content": chunks, "tool_calls": [calls[0].model_dump(exclude_none=True)]})
        messages.append({"role": "tool", "tool_call_id": calls[0].id, "name": "weather", "content": "sunny"})
    reply = client.chat.complete(model="magistral-medium-latest", messages=messages, tools=[CHAT_TOOL])
    assert DONE in str(reply.choices[0].message.content), reply


@check
def cohere_runs_a_tool_loop_with_its_thinking():
    client = cohere.ClientV2(api_key="any", base_url=URL)
    assert client.models.list().models
    messages = [{"role": "user", "content": LOOP}]
    for _ in range(2):
        reply = client.chat(model="command-a-reasoning-08-2025", messages=messages, tools=[CHAT_TOOL])
        fits(reply.message.tool_calls[0].function.arguments)
        messages.append(json.loads(reply.message.json(exclude_none=True)))
        messages.append({"role": "tool", "tool_call_id": reply.message.tool_calls[0].id, "content": "sunny"})
    kinds, text = set(), ""
    for event in client.chat_stream(model="command-a-reasoning-08-2025", messages=messages, tools=[CHAT_TOOL]):
        kinds.add(event.type)
        if event.type == "content-delta":
            text += event.delta.message.content.text or ""
    assert DONE in text and "message-end" in kinds, (text, kinds)


@check
def ollama_thinks_when_it_is_told_to():
    client = ollama.Client(host=URL)
    assert client.list().models and client.show("qwen3:8b").capabilities
    reply = client.chat(model="qwen3:8b", messages=[{"role": "user", "content": "hello"}], think=True)
    assert reply.message.thinking and reply.message.content, reply
    reply = client.chat(model="qwen3:8b", messages=[{"role": "user", "content": "hello"}], think=False)
    assert reply.message.content and not reply.message.thinking, reply
    # This SDK keeps neither references nor nested objects of a schema.
    unit = {"type": "object", "properties": {"unit": WEATHER["properties"]["unit"]}, "required": ["unit"]}
    tool = {"type": "function", "function": {"name": "weather", "description": "w", "parameters": unit}}
    messages = [{"role": "user", "content": LOOP}]
    for _ in range(2):
        parts = list(client.chat(model="qwen3:8b", messages=messages, tools=[tool], think=True, stream=True))
        calls = [call for part in parts for call in part.message.tool_calls or []]
        assert calls[0].function.arguments["unit"] in ["c", "f"], calls
        thinking = "".join(part.message.thinking or "" for part in parts)
        messages.append({"role": "assistant", "content": "", "thinking": thinking, "tool_calls": calls})
        messages.append({"role": "tool", "tool_name": "weather", "content": "sunny"})
    assert DONE in client.chat(model="qwen3:8b", messages=messages, tools=[tool]).message.content


@check
def bedrock_runs_a_tool_loop_with_signed_blocks():
    keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
    client = boto3.client("bedrock-runtime", endpoint_url=URL, **keys)
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    tools = {"tools": [{"toolSpec": {"name": "weather", "description": "w", "inputSchema": {"json": WEATHER}}}]}
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    settings = {"modelId": model, "toolConfig": tools, "additionalModelRequestFields": thinking}
    settings["inferenceConfig"] = {"maxTokens": 4096}
    messages = [{"role": "user", "content": [{"text": LOOP}]}]
    for _ in range(2):
        message = client.converse(messages=messages, **settings)["output"]["message"]
        assert message["content"][0]["reasoningContent"]["reasoningText"]["signature"], message
        call = message["content"][-1]["toolUse"]
        fits(call["input"])
        result = {"toolUseId": call["toolUseId"], "content": [{"text": "sunny"}]}
        messages += [message, {"role": "user", "content": [{"toolResult": result}]}]
    text = ""
    for event in client.converse_stream(messages=messages, **settings)["stream"]:
        text += event.get("contentBlockDelta", {}).get("delta", {}).get("text", "")
    assert DONE in text, text


def langchain_loop(model):
    bound = model.bind_tools([CHAT_TOOL])
    messages = [("user", LOOP)]
    for _ in range(2):
        reply = bound.invoke(messages)
        fits(reply.tool_calls[0]["args"])
        result = {"role": "tool", "tool_call_id": reply.tool_calls[0]["id"], "content": "sunny"}
        messages += [reply, result]
    return bound.invoke(messages)


@check
def langchain_runs_tool_loops_on_messages_and_responses():
    thinking = {"type": "adaptive", "display": "summarized"}
    claude = ChatAnthropic(model="claude-sonnet-5", base_url=URL, api_key="any", max_tokens=4096, thinking=thinking)
    assert DONE in str(langchain_loop(claude).content)
    gpt = ChatOpenAI(model="gpt-5.6", base_url=f"{URL}/v1", api_key="any", use_responses_api=True)
    assert DONE in str(langchain_loop(gpt).content)


@check
def langchain_loses_reasoning_content_on_chat():
    deepseek = ChatOpenAI(model="deepseek", base_url=f"{URL}/v1", api_key="any", max_retries=0)
    try:
        langchain_loop(deepseek)
    except openai.BadRequestError as error:
        assert "reasoning_content" in str(error), error
    else:
        raise AssertionError("ChatOpenAI now sends reasoning_content back; update this check")


@check
def litellm_runs_tool_loops_on_chat_and_messages():
    for model, base in [("openai/deepseek", f"{URL}/v1"), ("anthropic/claude-sonnet-5", URL)]:
        messages = [{"role": "user", "content": LOOP}]
        settings = {"model": model, "api_base": base, "api_key": "any", "tools": [CHAT_TOOL], "max_tokens": 4096}
        for _ in range(2):
            message = litellm.completion(messages=messages, **settings).choices[0].message
            fits(message.tool_calls[0].function.arguments)
            messages.append(message.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"})
        reply = litellm.completion(messages=messages, **settings)
        assert DONE in reply.choices[0].message.content, reply


@check
def pydantic_ai_runs_tool_loops_on_three_protocols():
    provider = OpenAIProvider(base_url=f"{URL}/v1", api_key="any")
    client = anthropic.AsyncAnthropic(base_url=URL, api_key="any")
    models = [
        OpenAIChatModel("deepseek", provider=provider),
        OpenAIResponsesModel("gpt-5.6", provider=provider),
        AnthropicModel("claude-sonnet-5", provider=AnthropicProvider(anthropic_client=client)),
    ]

    async def loops():
        for model in models:
            agent = Agent(model)

            @agent.tool_plain
            def weather(city: str) -> str:
                """The weather in a city."""
                return "sunny"

            result = await agent.run(LOOP)
            assert DONE in result.output, (model, result.output)

    asyncio.run(loops())


print(f"{len(PASSED)} passed, 0 failed")
