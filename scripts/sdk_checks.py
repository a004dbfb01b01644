"""Checks the simulator with the official SDKs. Run by scripts/sdk with the simulator's URL."""

import json
import sys

import anthropic
import openai
from google import genai
from google.genai import types

URL = sys.argv[1]
PASSED = []

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


def check(run):
    """Runs one check, named after what it verifies. The first failure ends the run."""
    run()
    PASSED.append(run.__name__)
    print(f"ok  {run.__name__.replace('_', ' ')}", flush=True)


def chat_client():
    return openai.OpenAI(base_url=f"{URL}/v1", api_key="any", max_retries=0)


def anthropic_client():
    return anthropic.Anthropic(base_url=URL, api_key="any", max_retries=0)


def gemini_client():
    return genai.Client(api_key="any", http_options=types.HttpOptions(base_url=URL))


CHAT_TOOL = {"type": "function", "function": {"name": "weather", "description": "w", "parameters": WEATHER}}


@check
def openai_chat_streams_thinking_then_an_answer():
    thinking, text, usage = "", "", None
    stream = chat_client().chat.completions.create(
        model="deepseek",
        stream=True,
        stream_options={"include_usage": True},
        messages=[{"role": "user", "content": "hello"}],
    )
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            thinking += getattr(choice.delta, "reasoning_content", None) or ""
            text += choice.delta.content or ""
    assert thinking and text, (thinking, text)
    assert usage and usage.completion_tokens > 0, usage


@check
def openai_chat_gives_a_whole_reply():
    reply = chat_client().chat.completions.create(model="deepseek", messages=[{"role": "user", "content": "hello"}])
    message = reply.choices[0].message
    assert message.content and message.reasoning_content, message
    assert reply.choices[0].finish_reason == "stop"


@check
def openai_chat_runs_a_tool_loop_with_the_thinking_sent_back():
    client, messages = chat_client(), [{"role": "user", "content": "sim: tool-loop 2"}]
    for _ in range(2):
        reply = client.chat.completions.create(model="deepseek", tools=[CHAT_TOOL], messages=messages)
        message = reply.choices[0].message
        assert message.tool_calls, message
        json.loads(message.tool_calls[0].function.arguments)
        messages.append(message.model_dump(exclude_none=True))
        messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"})
    reply = client.chat.completions.create(model="deepseek", tools=[CHAT_TOOL], messages=messages)
    assert reply.choices[0].message.content, reply


@check
def openai_chat_is_refused_when_the_thinking_is_forgotten():
    client, messages = chat_client(), [{"role": "user", "content": "sim: tool-loop 2"}]
    message = client.chat.completions.create(model="deepseek", tools=[CHAT_TOOL], messages=messages).choices[0].message
    forgetful = message.model_dump(exclude_none=True)
    forgetful.pop("reasoning_content")
    messages += [forgetful, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}]
    try:
        client.chat.completions.create(model="deepseek", tools=[CHAT_TOOL], messages=messages)
    except openai.BadRequestError as error:
        assert "reasoning_content" in str(error), error
    else:
        raise AssertionError("a request without its thinking was accepted")


@check
def openai_responses_streams_summaries_and_encrypted_items():
    client = chat_client()
    with client.responses.stream(
        model="openai", input="sim: summaries 2", store=False, include=["reasoning.encrypted_content"],
        reasoning={"summary": "auto"},
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.reasoning_summary_text.delta" in kinds, kinds
    item = final.output[0]
    assert item.type == "reasoning" and len(item.summary) == 2 and item.encrypted_content, item
    assert final.output_text and final.usage.output_tokens > 0, final


@check
def openai_responses_runs_a_tool_loop_with_its_items_sent_back():
    client = chat_client()
    tools = [{"type": "function", "name": "weather", "description": "w", "parameters": WEATHER, "strict": False}]
    items = [{"role": "user", "content": "sim: tool-loop 2"}]
    settings = {"model": "openai", "tools": tools, "store": False, "include": ["reasoning.encrypted_content"]}
    for _ in range(2):
        reply = client.responses.create(input=items, **settings)
        calls = [item for item in reply.output if item.type == "function_call"]
        assert calls, reply.output
        items += [item.model_dump(exclude_none=True, exclude={"status"}) for item in reply.output]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
    assert client.responses.create(input=items, **settings).output_text


@check
def anthropic_streams_signed_thinking():
    with anthropic_client().messages.stream(
        model="claude-sonnet-5", max_tokens=4096, thinking={"type": "adaptive", "display": "summarized"},
        messages=[{"role": "user", "content": "hello"}],
    ) as stream:
        kinds = {event.type for event in stream}
        message = stream.get_final_message()
    assert "thinking" in kinds and "text" in kinds, kinds
    thought, answer = message.content
    assert thought.type == "thinking" and thought.thinking and thought.signature, thought
    assert answer.text and message.usage.output_tokens > 0, message


@check
def anthropic_runs_a_tool_loop_with_signed_blocks_sent_back():
    client, messages = anthropic_client(), [{"role": "user", "content": "sim: tool-loop 2"}]
    tools = [{"name": "weather", "description": "w", "input_schema": WEATHER}]
    settings = {"model": "claude-sonnet-5", "max_tokens": 4096, "tools": tools}
    settings["thinking"] = {"type": "adaptive", "display": "summarized"}
    for _ in range(2):
        reply = client.messages.create(messages=messages, **settings)
        calls = [block for block in reply.content if block.type == "tool_use"]
        assert calls and reply.stop_reason == "tool_use", reply
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"} for call in calls]
        messages.append({"role": "user", "content": results})
    reply = client.messages.create(messages=messages, **settings)
    assert reply.stop_reason == "end_turn", reply


@check
def anthropic_refuses_a_changed_signature():
    client, messages = anthropic_client(), [{"role": "user", "content": "sim: tool-loop 2"}]
    tools = [{"name": "weather", "description": "w", "input_schema": WEATHER}]
    settings = {"model": "claude-sonnet-5", "max_tokens": 4096, "tools": tools}
    settings["thinking"] = {"type": "adaptive", "display": "summarized"}
    reply = client.messages.create(messages=messages, **settings)
    content = [block.model_dump(exclude_none=True) for block in reply.content]
    content[0]["signature"] = "AAAA" + content[0]["signature"][4:]
    call = next(block for block in reply.content if block.type == "tool_use")
    messages.append({"role": "assistant", "content": content})
    messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}]})
    try:
        client.messages.create(messages=messages, **settings)
    except anthropic.BadRequestError as error:
        assert "signature" in str(error), error
    else:
        raise AssertionError("a changed signature was accepted")


@check
def gemini_streams_thoughts():
    config = types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
    thinking, text, usage = "", "", None
    client = gemini_client()
    for chunk in client.models.generate_content_stream(model="gemini", contents="hello", config=config):
        usage = chunk.usage_metadata or usage
        for part in chunk.candidates[0].content.parts or []:
            if part.thought:
                thinking += part.text
            elif part.text:
                text += part.text
    assert thinking and text, (thinking, text)
    assert usage.thoughts_token_count, usage


@check
def gemini_runs_a_tool_loop_with_its_signatures_sent_back():
    client = gemini_client()
    declaration = types.FunctionDeclaration(name="weather", description="w", parameters_json_schema=WEATHER)
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declaration])])
    config.automatic_function_calling = types.AutomaticFunctionCallingConfig(disable=True)
    contents = [types.Content(role="user", parts=[types.Part(text="sim: tool-loop 2")])]
    for _ in range(2):
        reply = client.models.generate_content(model="gemini", contents=contents, config=config)
        content = reply.candidates[0].content
        calls = [part.function_call for part in content.parts if part.function_call]
        assert calls, content
        assert any(part.thought_signature for part in content.parts), content
        contents.append(content)
        results = [types.Part.from_function_response(name=call.name, response={"result": "sunny"}) for call in calls]
        contents.append(types.Content(role="user", parts=results))
    reply = client.models.generate_content(model="gemini", contents=contents, config=config)
    assert reply.text, reply


print(f"{len(PASSED)} passed, 0 failed")
