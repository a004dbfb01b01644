"""Runs SDKs and frameworks through the gateway against the simulator. Started by scripts/gateway.

Every client keeps in its history what it was made to keep, and once more loses the thinking. One conversation has a
plain turn, a tool loop of three steps, a restart of the gateway, parallel calls from a resumed history, another model for
one turn, and the second gateway."""

import asyncio
import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from gateway_results import Result, write_page
from gateway_servers import Seen, database_server, servers, stop_servers_when_terminated

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL = {"type": "function", "function": {"name": "weather", "description": "the weather", "parameters": SCHEMA}}
MOST_STEPS = 8
# Each client's own dialect first, then three of other protocols.
CHAT = ["deepseek", "anthropic", "gemini", "openai"]
RESPONSES = ["openai", "deepseek", "anthropic", "gemini"]
MESSAGES = ["anthropic", "deepseek", "openai", "gemini"]
GEMINI = ["gemini", "deepseek", "anthropic", "openai"]
OLLAMA = ["ollama", "deepseek", "anthropic", "gemini"]


class Sdk:
    """A provider's own library. The program that uses it writes the history, with the thinking or without it."""

    def __init__(self, forgets):
        self.thinking = "forgotten" if forgets else "kept"
        self.forgets = forgets


class Framework:
    """A library that writes the history itself."""

    def __init__(self, gets_none):
        self.thinking = "lost" if gets_none else "kept"


class OpenaiChat(Sdk):
    name, package, dialects = "openai sdk, Chat", "openai", CHAT

    def complete(self, client, model, history):
        return client.chat.completions.create(model=model, tools=[CHAT_TOOL], messages=history)

    def ask(self, url, model, history, prompt):
        import openai

        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
        history.append({"role": "user", "content": prompt})
        for _ in range(MOST_STEPS):
            message = self.complete(client, model, history).choices[0].message
            calls = [{"id": call.id, "type": "function",
                      "function": {"name": call.function.name, "arguments": call.function.arguments}}
                     for call in message.tool_calls or []]
            bare = {"role": "assistant", "content": message.content, **({"tool_calls": calls} if calls else {})}
            history.append(bare if self.forgets else message.model_dump(exclude_none=True))
            if not calls:
                return message.content
            history += [{"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in calls]
        raise AssertionError("the tool loop does not end")


class OpenaiChatStream(OpenaiChat):
    name = "openai sdk, Chat streamed"

    def complete(self, client, model, history):
        with client.chat.completions.stream(model=model, tools=[CHAT_TOOL], messages=history) as stream:
            for _ in stream:
                pass
            return stream.get_final_completion()


class OpenaiResponses(Sdk):
    name, package, dialects = "openai sdk, Responses", "openai", RESPONSES

    def ask(self, url, model, history, prompt):
        import openai

        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
        tool = {"type": "function", "name": "weather", "description": "the weather", "parameters": SCHEMA, "strict": False}
        history.append({"role": "user", "content": prompt})
        for _ in range(MOST_STEPS):
            reply = client.responses.create(model=model, tools=[tool], input=history, store=False,
                                            include=["reasoning.encrypted_content"])
            calls = [item for item in reply.output if item.type == "function_call"]
            bare = [{"role": "assistant", "content": reply.output_text}] if reply.output_text else []
            bare += [{"type": "function_call", "call_id": call.call_id, "name": call.name,
                      "arguments": call.arguments} for call in calls]
            history += bare if self.forgets else [item.model_dump(exclude_none=True) for item in reply.output]
            if not calls:
                return reply.output_text
            history += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]
        raise AssertionError("the tool loop does not end")


class Anthropic(Sdk):
    name, package, dialects = "anthropic sdk", "anthropic", MESSAGES

    def ask(self, url, model, history, prompt):
        import anthropic

        client = anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)
        tool = {"name": "weather", "description": "the weather", "input_schema": SCHEMA}
        history.append({"role": "user", "content": prompt})
        for _ in range(MOST_STEPS):
            with client.messages.stream(model=model, max_tokens=8192, tools=[tool], messages=history,
                                        thinking={"type": "adaptive"}) as stream:
                message = stream.get_final_message()
            calls = [block for block in message.content if block.type == "tool_use"]
            texts = [{"type": "text", "text": block.text} for block in message.content if block.type == "text"]
            uses = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input} for call in calls]
            blocks = texts + uses if self.forgets else [block.model_dump(exclude_none=True) for block in message.content]
            history.append({"role": "assistant", "content": blocks})
            if not calls:
                return "".join(text["text"] for text in texts)
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"} for call in calls]
            history.append({"role": "user", "content": results})
        raise AssertionError("the tool loop does not end")


class GoogleGenai(Sdk):
    name, package, dialects = "google-genai", "google-genai", GEMINI

    def ask(self, url, model, history, prompt):
        from google import genai
        from google.genai import types

        client = genai.Client(api_key="any", http_options=types.HttpOptions(base_url=url))
        tool = types.Tool(function_declarations=[types.FunctionDeclaration(
            name="weather", description="the weather", parameters_json_schema=SCHEMA)])
        config = types.GenerateContentConfig(tools=[tool])
        history.append({"role": "user", "parts": [{"text": prompt}]})
        for _ in range(MOST_STEPS):
            contents = [types.Content.model_validate_json(json.dumps(content)) for content in history]
            reply = client.models.generate_content(model=model, contents=contents, config=config)
            parts = reply.candidates[0].content.parts or []
            text = "".join(part.text for part in parts if part.text and not part.thought)
            calls = [part.function_call for part in parts if part.function_call]
            kept = [{"text": text}] if text else []
            kept += [{"function_call": {"name": call.name, "args": call.args}} for call in calls]
            whole = json.loads(reply.candidates[0].content.model_dump_json(exclude_none=True))
            history.append({"role": "model", "parts": kept} if self.forgets else whole)
            if not calls:
                return text
            history.append({"role": "user", "parts": [
                {"function_response": {"name": call.name, "response": {"result": "sunny"}}} for call in calls]})
        raise AssertionError("the tool loop does not end")


class Ollama(Sdk):
    name, package, dialects = "ollama sdk", "ollama", OLLAMA

    def ask(self, url, model, history, prompt):
        import ollama

        client = ollama.Client(host=url)
        assert client.list().models, "no model is listed"
        history.append({"role": "user", "content": prompt})
        for _ in range(MOST_STEPS):
            parts = list(client.chat(model=model, messages=history, tools=[CHAT_TOOL], think=True, stream=True))
            text = "".join(part.message.content or "" for part in parts)
            calls = [call for part in parts for call in part.message.tool_calls or []]
            kept = [{"function": {"name": call.function.name, "arguments": dict(call.function.arguments)}} for call in calls]
            thinking = "" if self.forgets else "".join(part.message.thinking or "" for part in parts)
            more = {**({"thinking": thinking} if thinking else {}), **({"tool_calls": kept} if kept else {})}
            history.append({"role": "assistant", "content": text, **more})
            if not calls:
                return text
            history += [{"role": "tool", "tool_name": call.function.name, "content": "sunny"} for call in calls]
        raise AssertionError("the tool loop does not end")


class LangChain(Framework):
    def model(self, url, model):
        raise NotImplementedError

    def ask(self, url, model, history, prompt):
        from langchain_core.messages import HumanMessage, ToolMessage, messages_from_dict, messages_to_dict

        bound = self.model(url, model).bind_tools([CHAT_TOOL])
        messages = [*messages_from_dict(history), HumanMessage(prompt)]
        for _ in range(MOST_STEPS):
            reply = bound.invoke(messages)
            messages.append(reply)
            if not reply.tool_calls:
                history[:] = messages_to_dict(messages)
                return reply.content if isinstance(reply.content, str) else json.dumps(reply.content)
            messages += [ToolMessage("sunny", tool_call_id=call["id"]) for call in reply.tool_calls]
        raise AssertionError("the tool loop does not end")


class LangChainChat(LangChain):
    name, package, dialects = "langchain-openai", "langchain-openai", CHAT

    def model(self, url, model):
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model=model, base_url=f"{url}/v1", api_key="any", max_retries=0)


class LangChainAnthropic(LangChain):
    name, package, dialects = "langchain-anthropic", "langchain-anthropic", MESSAGES

    def model(self, url, model):
        from langchain_anthropic import ChatAnthropic

        thinking = {"type": "adaptive", "display": "summarized"}
        return ChatAnthropic(model=model, base_url=url, api_key="any", max_tokens=8192, thinking=thinking, max_retries=0)


class PydanticAi(Framework):
    # One for all turns: the libraries close their connections later, in the loop that opened them.
    loop = asyncio.new_event_loop()

    def ask(self, url, model, history, prompt):
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        async def run():
            agent = Agent(self.model(url, model))

            @agent.tool_plain
            def weather(city: str) -> str:
                """The weather in a city."""
                return "sunny"

            past = ModelMessagesTypeAdapter.validate_python(history)
            result = await agent.run(prompt, message_history=past)
            history[:] = json.loads(ModelMessagesTypeAdapter.dump_json(result.all_messages()))
            return result.output

        return self.loop.run_until_complete(run())


class PydanticAiChat(PydanticAi):
    name, package, dialects = "pydantic-ai, Chat", "pydantic-ai-slim", CHAT

    def model(self, url, model):
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        return OpenAIChatModel(model, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="any"))


class PydanticAiMessages(PydanticAi):
    name, package, dialects = "pydantic-ai, Messages", "pydantic-ai-slim", MESSAGES

    def model(self, url, model):
        import anthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = anthropic.AsyncAnthropic(base_url=url, api_key="any", max_retries=0)
        return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))


class LiteLlm(Framework):
    name, package, dialects = "litellm", "litellm", CHAT

    def ask(self, url, model, history, prompt):
        import litellm

        history.append({"role": "user", "content": prompt})
        for _ in range(MOST_STEPS):
            reply = litellm.completion(model=f"openai/{model}", api_base=f"{url}/v1", api_key="any", tools=[CHAT_TOOL],
                                       messages=history, num_retries=0)
            message = reply.choices[0].message
            history.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                return message.content
            history += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
        raise AssertionError("the tool loop does not end")


class Vercel(Framework):
    """A process of Node for each turn."""

    @property
    def name(self):
        return f"Vercel AI SDK, {self.library}"

    def ask(self, url, model, history, prompt):
        folder = Path(os.environ["ASIDE_SDKS"]) / "node"
        words = ["node", str(folder / "gateway_turn.mjs"), self.library, url, model, prompt]
        done = subprocess.run(words, input=json.dumps(history), capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise AssertionError(done.stderr[-1500:])
        answer = json.loads(done.stdout)
        history[:] = answer["messages"]
        return answer["text"]


class VercelChat(Vercel):
    library, dialects = "openai-compatible", CHAT


class VercelResponses(Vercel):
    library, dialects = "openai", RESPONSES


class VercelMessages(Vercel):
    library, dialects = "anthropic", MESSAGES


class VercelGemini(Vercel):
    library, dialects = "google", GEMINI


CLIENTS = [
    OpenaiChat, OpenaiChatStream, OpenaiResponses, Anthropic, GoogleGenai, Ollama, LangChainChat, LangChainAnthropic,
    PydanticAiChat, PydanticAiMessages, LiteLlm, VercelChat, VercelResponses, VercelMessages, VercelGemini,
]


def expect(text, words):
    assert words in (text or ""), f"`{words}` is not in the answer: {text}"


# How many replies the turns of a conversation take, apart from the turn of the other model: a plain turn, a loop of
# three, parallel calls, and a loop of one.
N_REPLIES = 1 + 4 + 2 + 2


def converse(client, dialect, other, running, result):
    """One conversation. The history is JSON between turns, as in a program that stores it."""
    history = []
    model, other = f"up-{dialect}/{dialect}", f"up-{other}/{other}"

    def turn(cases, gateway, model, prompt, words):
        stored = json.loads(json.dumps(history))
        result.cases.update(dict.fromkeys(cases, False))
        try:
            expect(client.ask(gateway.url, model, stored, prompt), words)
        except Exception as error:
            raise AssertionError(f"{', '.join(cases)}: {type(error).__name__}: {error}") from error
        result.cases.update(dict.fromkeys(cases, True))
        history[:] = stored

    turn(["plain"], running.first, model, "Say hello.", "aside simulator")
    turn(["loop"], running.first, model, "sim: tool-loop 3", "Steps with tools in this turn: 3.")
    running.first.restart()
    turn(["resumed", "parallel"], running.first, model, "sim: parallel 2", "aside simulator")
    turn(["other"], running.first, other, "And you?", "aside simulator")
    turn(["replica", "back"], running.second, model, "sim: tool-loop 1", "Steps with tools in this turn: 1.")


def version_of(client):
    """The version of the package that the client is."""
    if isinstance(client, Vercel):
        folder = Path(os.environ["ASIDE_SDKS"]) / "node/node_modules/@ai-sdk" / client.library
        return json.loads((folder / "package.json").read_text())["version"]
    return importlib.metadata.version(client.package)


def check(aside, client, dialect, database):
    other = next(known for known in reversed(client.dialects) if known != dialect)
    is_own = dialect == client.dialects[0]
    result = Result(client.name, version_of(client), dialect, is_own, client.thinking)
    with servers(aside, "none" if client.thinking == "lost" else "auto", database) as running:
        try:
            converse(client, dialect, other, running, result)
        except AssertionError as error:
            result.problems.append(str(error)[-1500:])
        seen = Seen(running)
    if not result.problems:
        seen.expect_replies(N_REPLIES - 1)
    # A reply in the client's own protocol passes as it is, with its thinking.
    if client.thinking == "forgotten" or (client.thinking == "lost" and not is_own):
        seen.expect_all_restored()
    result.finish(seen)
    return result.report(is_whole=database is not None)


def main():
    stop_servers_when_terminated()
    aside, *words = sys.argv[1:]
    quick = "--quick" in words
    names = [word for word in words if not word.startswith("--")]
    outcomes = []
    with database_server(quick) as database:
        for nth, kind in enumerate(CLIENTS):
            for client in (kind(False), kind(True)):
                if names and not any(name in client.name for name in names):
                    continue
                # The quick run takes one dialect of each client, another one for each.
                dialects = [client.dialects[1 + nth % 3]] if quick else client.dialects
                outcomes += [check(aside, client, dialect, database) for dialect in dialects]
    print(f"SDKs: {outcomes.count(False)} of {len(outcomes)} conversations passed", flush=True)
    if "--write" in words:
        write_page()
    sys.exit(1 if any(outcomes) else 0)


if __name__ == "__main__":
    main()
