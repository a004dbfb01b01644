"""Runs two gateways with deploy/config.toml behind nginx with deploy/nginx.conf. Started by scripts/deploy."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from gateway_servers import Postgres, stop_servers_when_terminated
from main import REPOSITORY, address_in

DEPLOY = REPOSITORY / "deploy"
# The addresses of the two files that are replaced here: those of a network of containers.
STORE = 'store = "postgres://aside:aside@database:5432/aside"'
LISTEN = 'listen = "0.0.0.0:4140"'


def replaced(text, old, new):
    if old not in text:
        raise SystemExit(f"`{old}` is not in the file")
    return text.replace(old, new)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_gateway(aside, folder, environment):
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen([aside, "serve"], stderr=file, env=environment)
    try:
        return process, address_in(log, "the gateway").rsplit(":", 1)[1].strip("/")
    except BaseException:
        process.terminate()
        raise


def start_nginx(folder, ports):
    """nginx with the file of deploy/, and the ports of these gateways."""
    port = free_port()
    text = (DEPLOY / "nginx.conf").read_text()
    text = replaced(text, "first:4140", f"127.0.0.1:{ports[0]}")
    text = replaced(text, "second:4140", f"127.0.0.1:{ports[1]}")
    text = replaced(text, "listen 4140;", f"listen 127.0.0.1:{port};")
    main = folder / "nginx.conf"
    main.write_text(f"daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{text}\n}}\n")
    words = ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(main)]
    subprocess.run([*words, "-t"], check=True)
    return subprocess.Popen(words), port


def status(url, key):
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def wait_for(url):
    for _ in range(300):
        try:
            return status(url, None)
        except urllib.error.URLError:
            time.sleep(0.1)
    raise SystemExit("nginx did not start")


def check(aside, folder, postgres):
    text = (DEPLOY / "config.toml").read_text()
    text = replaced(text, STORE, f'store = "{postgres.new_database()}"')
    text = replaced(text, LISTEN, 'listen = "0.0.0.0:0"')
    running, ports = [], []
    try:
        for name in ("first", "second"):
            place = folder / name
            place.mkdir()
            (place / "config.toml").write_text(text)
            environment = {
                "PATH": os.environ["PATH"], "HOME": str(place), "ASIDE_CONFIG_DIR": str(place),
                "ASIDE_DATA_DIR": str(place / "data"), "ASIDE_STORE_KEY": "5a" * 32, "ANTHROPIC_API_KEY": "any",
            }
            if name == "first":
                words = [aside, "serve", "key", "new", "me"]
                key = subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout.strip()
            subprocess.run([aside, "serve", "--check-config"], env=environment, check=True)
            process, port = start_gateway(aside, place, environment)
            running.append(process)
            ports.append(port)
        nginx, port = start_nginx(folder, ports)
        running.append(nginx)
        url = f"http://127.0.0.1:{port}"
        wait_for(f"{url}/healthz")
        # Twice, so that each replica is asked.
        seen = [status(f"{url}/v1/models", given) for given in (key, key, None, None)]
        if seen != [200, 200, 401, 401]:
            raise SystemExit(f"with a key and without one, the gateways answered {seen}")
        print("both gateways answer through nginx, with the key that one of them made, and to nobody without it")
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


def main():
    stop_servers_when_terminated()
    postgres = Postgres()
    try:
        with tempfile.TemporaryDirectory(prefix="aside-deploy-", ignore_cleanup_errors=True) as folder:
            check(sys.argv[1], Path(folder), postgres)
    finally:
        postgres.stop()


if __name__ == "__main__":
    main()
