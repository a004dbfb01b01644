"""The agents: how each is pointed at the simulator, started and resumed."""

import json


class Route:
    """A protocol that an agent speaks, and the model that it asks for. `loses_loop`: the
    agent drops what this provider demands, so that its tool loops are refused."""

    def __init__(self, protocol, model, loses_loop=False):
        self.protocol, self.model, self.loses_loop = protocol, model, loses_loop


CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat", "openai-responses", "anthropic", "gemini"


class Agent:
    name = package = ""
    routes = []
    has_tools = resumes = True
    # Whether its history has other questions than those that it sent.
    changes_questions = False
    # Whether it sends back all the thinking that it got.
    keeps_thinking = False

    def prepare(self, route, place):
        """Writes the agent's configuration."""

    def environment(self, route, place):
        return {}

    def command(self, route, prompt, place, resume):
        raise NotImplementedError

    def version(self, installed):
        return json.loads((installed / "npm/node_modules" / self.package / "package.json").read_text())["version"]


class PipAgent(Agent):
    def program(self, place):
        return str(place.installed / self.name / "bin" / self.name)

    def version(self, installed):
        folder = installed / self.name / "lib"
        found = next(folder.glob(f"python3*/site-packages/{self.package.replace('-', '_')}-*.dist-info"))
        return found.name.removesuffix(".dist-info").rsplit("-", 1)[1]


class ClaudeCode(Agent):
    name, package = "claude", "@anthropic-ai/claude-code"
    keeps_thinking = True
    routes = [Route(MESSAGES, "claude-sonnet-5"), Route(MESSAGES, "claude-opus-4-8"), Route(MESSAGES, "kimi-anthropic")]

    def prepare(self, route, place):
        place.write(place.home / ".claude.json", json.dumps({"hasCompletedOnboarding": True}))

    def environment(self, route, place):
        return {
            "ANTHROPIC_BASE_URL": place.url,
            "ANTHROPIC_API_KEY": "sim",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": "claude-haiku-4-5",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

    def command(self, route, prompt, place, resume):
        tools = "Read,Glob,Grep,LS,Bash(ls)"
        more = ["-c"] if resume else []
        return ["claude", "-p", prompt, "--model", route.model, "--allowedTools", tools, *more]


class Codex(Agent):
    name, package = "codex", "@openai/codex"
    keeps_thinking = True
    routes = [Route(RESPONSES, "gpt-5.6"), Route(RESPONSES, "deepseek-responses")]

    def prepare(self, route, place):
        place.write(place.home / ".codex/config.toml", f"""
model = "{route.model}"
model_provider = "sim"
model_reasoning_summary = "auto"
[model_providers.sim]
name = "sim"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "SIM_KEY"
""")

    def environment(self, route, place):
        return {"CODEX_HOME": str(place.home / ".codex"), "SIM_KEY": "sim"}

    def command(self, route, prompt, place, resume):
        how = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return ["codex", "exec", *how, *(["resume", "--last"] if resume else []), prompt]


class OpenCode(Agent):
    name, package = "opencode", "opencode-ai"
    routes = [Route(CHAT, "deepseek"), Route(MESSAGES, "claude-sonnet-5"), Route(RESPONSES, "gpt-5.6")]
    libraries = {CHAT: "@ai-sdk/openai-compatible", MESSAGES: "@ai-sdk/anthropic", RESPONSES: "@ai-sdk/openai"}

    def prepare(self, route, place):
        model = {"name": route.model, "reasoning": True, "tool_call": True, "limit": {"context": 200000, "output": 8192}}
        if route.protocol == CHAT:
            model["interleaved"] = {"field": "reasoning_content"}
        provider = {
            "npm": self.libraries[route.protocol],
            "options": {"baseURL": f"{place.url}/v1", "apiKey": "sim"},
            "models": {route.model: model},
        }
        settings = {
            "provider": {"sim": provider}, "autoupdate": False, "share": "disabled",
            "small_model": f"sim/{route.model}", "permission": {"*": "allow"},
        }
        place.write(place.work / "opencode.json", json.dumps(settings))

    def environment(self, route, place):
        return {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}

    def command(self, route, prompt, place, resume):
        return ["opencode", "run", "-m", f"sim/{route.model}", *(["-c"] if resume else []), prompt]


class Pi(Agent):
    name, package = "pi", "@earendil-works/pi-coding-agent"
    routes = [Route(CHAT, "deepseek"), Route(MESSAGES, "claude-sonnet-5"), Route(RESPONSES, "gpt-5.6")]
    interfaces = {CHAT: "openai-completions", MESSAGES: "anthropic-messages", RESPONSES: "openai-responses"}

    def prepare(self, route, place):
        base = place.url if route.protocol == MESSAGES else f"{place.url}/v1"
        model = {"id": route.model, "reasoning": True, "contextWindow": 200000, "maxTokens": 8192}
        provider = {"baseUrl": base, "apiKey": "sim", "api": self.interfaces[route.protocol], "models": [model]}
        place.write(place.home / ".pi/agent/models.json", json.dumps({"providers": {"sim": provider}}))

    def command(self, route, prompt, place, resume):
        return ["pi", "-p", *(["-c"] if resume else []), "--provider", "sim", "--model", route.model, prompt]


class Goose(Agent):
    name, package = "goose", "@aaif/goose-binary-linux-x64"
    routes = [Route(CHAT, "deepseek"), Route(MESSAGES, "claude-sonnet-5")]

    def environment(self, route, place):
        provider = "anthropic" if route.protocol == MESSAGES else "openai"
        return {
            "GOOSE_PROVIDER": provider,
            "GOOSE_MODEL": route.model,
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
            "GOOSE_TELEMETRY_ENABLED": "false",
            "OPENAI_HOST": place.url,
            "OPENAI_API_KEY": "sim",
            "ANTHROPIC_HOST": place.url,
            "ANTHROPIC_API_KEY": "sim",
        }

    def command(self, route, prompt, place, resume):
        program = place.installed / "npm/node_modules" / self.package / "bin/goose"
        more = ["--resume"] if resume else []
        return [str(program), "run", "--name", "sim", "--with-builtin", "developer", *more, "-t", prompt]


class GeminiCli(Agent):
    name, package = "gemini", "@google/gemini-cli"
    routes = [Route(GEMINI, "gemini-3-pro-preview")]

    def prepare(self, route, place):
        settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": False}}
        settings["privacy"] = {"usageStatisticsEnabled": False}
        place.write(place.home / ".gemini/settings.json", json.dumps(settings))

    def environment(self, route, place):
        return {"GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_API_KEY": "sim"}

    def command(self, route, prompt, place, resume):
        more = ["--resume", "latest"] if resume else []
        return ["gemini", "-m", route.model, "--skip-trust", "--approval-mode", "yolo", *more, "-p", prompt]


class QwenCode(Agent):
    name, package = "qwen", "@qwen-code/qwen-code"
    routes = [Route(CHAT, "qwen"), Route(CHAT, "deepseek")]

    def prepare(self, route, place):
        settings = {"security": {"auth": {"selectedType": "openai"}}, "telemetry": {"enabled": False}}
        settings["privacy"] = {"usageStatisticsEnabled": False}
        place.write(place.home / ".qwen/settings.json", json.dumps(settings))

    def environment(self, route, place):
        return {"OPENAI_BASE_URL": f"{place.url}/v1", "OPENAI_API_KEY": "sim", "OPENAI_MODEL": route.model}

    def command(self, route, prompt, place, resume):
        return ["qwen", "--approval-mode", "yolo", *(["--continue"] if resume else []), "-p", prompt]


class Aider(PipAgent):
    name, package = "aider", "aider-chat"
    routes = [Route(CHAT, "deepseek")]
    has_tools = False
    changes_questions = True

    def prepare(self, route, place):
        # A list of models that is new enough, so that it does not load one from the network at every start.
        place.write(place.home / ".aider/caches/model_prices_and_context_window.json", json.dumps({"none": {}}))

    def environment(self, route, place):
        return {"OPENAI_API_BASE": f"{place.url}/v1", "OPENAI_API_KEY": "sim", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def command(self, route, prompt, place, resume):
        quiet = ["--no-git", "--yes-always", "--no-check-update", "--no-analytics", "--no-show-model-warnings"]
        more = ["--restore-chat-history"] if resume else []
        return [self.program(place), "--model", f"openai/{route.model}", *quiet, *more, "--message", prompt]


class Llm(PipAgent):
    name, package = "llm", "llm"
    routes = [Route(CHAT, "deepseek", loses_loop=True), Route(CHAT, "vllm")]
    function = 'def list_files(path: str) -> str:\n    "List a folder"\n    return "README.md"\n'

    def prepare(self, route, place):
        model = f"- model_id: sim\n  model_name: {route.model}\n  api_base: {place.url}/v1\n"
        place.write(place.home / "llm/extra-openai-models.yaml", model + "  supports_tools: true\n")

    def environment(self, route, place):
        return {"LLM_USER_PATH": str(place.home / "llm"), "OPENAI_API_KEY": "sim"}

    def command(self, route, prompt, place, resume):
        more = ["-c"] if resume else []
        return [self.program(place), "-m", "sim", "--functions", self.function, *more, prompt]


AGENTS = [ClaudeCode(), Codex(), OpenCode(), Pi(), Goose(), GeminiCli(), QwenCode(), Aider(), Llm()]
