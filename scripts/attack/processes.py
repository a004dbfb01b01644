"""No process outlives its tool call, or aside itself."""

import signal

from world import World, call, gone, mark, sleeping_processes, wait_for

DAEMON = "(setsid sh -c 'setsid sleep {0} & exit' &) ; setsid nohup sleep {0} > /dev/null 2>&1 & "


def after_the_call(extra):
    def attack():
        seconds = mark()
        with World([call("shell", {"command": DAEMON.format(seconds) + extra})]) as world:
            world.ask("--yes", "go", timeout=90)
            assert len(world.provider.bodies) == 2
            assert gone(seconds, 1), "a daemon outlives its call"
    return attack


def after(number, code):
    def attack():
        seconds = mark()
        with World([call("shell", {"command": DAEMON.format(seconds) + "touch started; wait; sleep " + seconds})]) as world:
            terminal = world.terminal("ask", "--yes", "-m", "evil/m", "go")
            wait_for(lambda: world.has("started") and sleeping_processes(seconds))
            terminal.signal(number)
            assert terminal.end() == code
            assert gone(seconds), "something outlives aside"
    return attack


def on_the_screen(number, code):
    def attack():
        seconds = mark()
        with World([call("shell", {"command": DAEMON.format(seconds) + "touch started; sleep " + seconds})]) as world:
            terminal = world.front_end("screen")
            terminal.see("y once")
            terminal.read_then_type("y")
            wait_for(lambda: world.has("started") and sleeping_processes(seconds))
            terminal.signal(number)
            assert terminal.end() == code
            assert gone(seconds), "something outlives aside"
    return attack


def cases():
    yield "a daemon ends with its call", after_the_call("true")
    yield "a daemon ends with a call that fails", after_the_call("exit 3")
    yield "TERM ends ask with all it started", after(signal.SIGTERM, 143)
    yield "HUP ends ask with all it started", after(signal.SIGHUP, 129)
    yield "INT ends ask with all it started", after(signal.SIGINT, 130)
    yield "KILL ends what ask started", after(signal.SIGKILL, -9)
    yield "TERM ends the screen with all it started", on_the_screen(signal.SIGTERM, 143)
    yield "KILL ends what the screen started", on_the_screen(signal.SIGKILL, -9)
