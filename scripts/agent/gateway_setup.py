"""Does what `aside serve setup CLIENT` prints, and uses the client. Started by scripts/gateway."""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gateway_servers import Gateway, stop_servers_when_terminated
from main import PLAIN, Place, Simulator

ANSWER = "aside simulator"
# A model of a provider that speaks none of these clients' protocols, except Chat's.
MODEL = "up-gemini/gemini"

PYTHON = {
    "openai": """
import openai
print(openai.OpenAI().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": PROMPT}]).choices[0].message.content)
""",
    "anthropic": """
import anthropic
reply = anthropic.Anthropic().messages.create(model=MODEL, max_tokens=4096, messages=[{"role": "user", "content": PROMPT}])
print(reply.content[-1].text)
""",
    "ollama": """
import ollama
print(ollama.chat(model=MODEL, messages=[{"role": "user", "content": PROMPT}]).message.content)
""",
    "langchain": """
print(model.invoke(PROMPT).content)
""",
}


def lines_of_shell(text, last):
    """The printed commands, with more arguments for the last one."""
    return text.rstrip() + " " + shlex.join(last) + "\n"


def prepare(client, text, place, sdks):
    """Puts what was printed where the client reads it. The command that uses the client, as a line of a shell."""
    agents = place.installed
    if client == "claude":
        place.write(place.home / ".claude.json", '{"hasCompletedOnboarding": true}')
        return lines_of_shell(text, ["-p", PLAIN])
    if client == "gemini":
        settings = '{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}'
        place.write(place.home / ".gemini/settings.json", settings)
        return lines_of_shell(text, ["--skip-trust", "-p", PLAIN])
    if client == "aider":
        flags = ["--no-git", "--yes-always", "--no-check-update", "--no-analytics", "--no-show-model-warnings"]
        return f"PATH={agents}/aider/bin:$PATH\n" + lines_of_shell(text, [*flags, "--message", PLAIN])
    if client == "codex":
        # With the list of all models, which two comments describe.
        comments = [line.removeprefix("# ") for line in text.splitlines() if line.startswith("# ")]
        make_list = next(line for line in comments if line.startswith("curl "))
        setting = next(line for line in comments if line.startswith("model_catalog_json "))
        table = "[model_providers.aside]"
        place.write(place.home / ".codex/config.toml", text.replace(table, f"{setting}\n{table}", 1))
        how = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        return f"{make_list}\n" + shlex.join(["codex", "exec", *how, PLAIN])
    if client == "opencode":
        place.write(place.work / "opencode.json", text.split("\n", 1)[1])
        return shlex.join(["opencode", "run", PLAIN])
    if client == "llm":
        place.write(place.home / "llm/extra-openai-models.yaml", text)
        program = f"{agents}/llm/bin/llm"
        return f"{program} keys set aside --value any\n" + shlex.join([program, "-m", "aside", PLAIN])
    code = PYTHON[client].replace("MODEL", repr(MODEL)).replace("PROMPT", repr(PLAIN))
    before = text if client == "langchain" else ""
    exports = "" if client == "langchain" else text
    place.write(place.work / "use.py", before + code)
    return exports + f"{sdks}/python/bin/python use.py"


CLIENTS = ["claude", "codex", "gemini", "opencode", "aider", "llm", "openai", "anthropic", "ollama", "langchain"]


def check(aside, agents, sdks, client):
    with tempfile.TemporaryDirectory(prefix="aside-setup-", ignore_cleanup_errors=True) as folder:
        simulator = Simulator(aside, Path(folder))
        gateway = Gateway(aside, Path(folder), simulator, "auto")
        try:
            words = [aside, "serve", "setup", client, "--model", MODEL, "--url", gateway.url]
            text = subprocess.run(words, capture_output=True, text=True, check=True, env=gateway.environment).stdout
            place = Place(Path(folder), agents, gateway.url)
            home = str(place.home)
            environment = {
                "PATH": f"{place.bin}:{os.environ['PATH']}", "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8",
                "TERM": "dumb", "NO_COLOR": "1", "ASIDE_SERVE_KEY": "any", "LLM_USER_PATH": f"{home}/llm",
                "CODEX_HOME": f"{home}/.codex", "XDG_CONFIG_HOME": f"{home}/.config",
                "XDG_DATA_HOME": f"{home}/.local/share", "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
            }
            line = prepare(client, text, place, sdks)
            done = subprocess.run(["bash", "-c", line], cwd=place.work, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=180)
            if done.returncode != 0 or ANSWER not in done.stdout:
                return f"it ended with {done.returncode}: {(done.stdout + done.stderr)[-900:]}\nafter this was done:\n{text}"
            if not any(receipt["status"] == 200 for receipt in gateway.receipts()):
                return "it did not use the gateway"
            return None
        finally:
            gateway.stop()
            simulator.stop()


def main():
    stop_servers_when_terminated()
    aside, agents, sdks, *names = sys.argv[1:]
    failed = False
    for client in names or CLIENTS:
        start = time.monotonic()
        problem = check(aside, agents, sdks, client)
        failed |= problem is not None
        print(f"{'FAILED' if problem else 'ok'} serve setup {client}, {time.monotonic() - start:.0f} s", flush=True)
        if problem:
            print(f"    {problem}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
