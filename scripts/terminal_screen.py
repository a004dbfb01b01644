"""A program in a pseudo-terminal, and what it shows. Needs no package."""

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time

from terminal_emulator import Emulator


class Terminal:
    """Runs a program on a screen of this size."""

    def __init__(self, command, rows=120, columns=160, **options):
        self.emulator = Emulator(rows, columns)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.chdir(options["cwd"])
            os.execvpe(command[0], command, {**options["env"], "TERM": "xterm-256color"})
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.process, signal.SIGWINCH)
        self._changed = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                data = os.read(self.terminal, 1 << 16)
            except OSError:
                data = b""
            with self._changed:
                if not data:
                    self._ended = True
                    self._changed.notify_all()
                    return
                self.emulator.feed(decoder.decode(data))
                self._changed.notify_all()

    def text(self):
        with self._changed:
            return self.emulator.text()

    def words(self):
        """The text without what is drawn around it, and with single spaces."""
        letters = "".join(letter if not 0x2500 <= ord(letter) <= 0x259F else " " for letter in self.text())
        return re.sub(r"\s+", " ", letters)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait(self, condition, what, seconds=90):
        """Waits until the condition is true of the words on the screen."""
        until = time.monotonic() + seconds
        while not condition(self.words()):
            with self._changed:
                if self._ended or time.monotonic() > until:
                    raise AssertionError(f"never: {what}\n{self.text()}")
                self._changed.wait(1)

    def end(self):
        """Ends the program with a signal if it has not ended, and waits for it."""
        try:
            os.kill(self.process, signal.SIGTERM)
        except ProcessLookupError:
            pass
        os.waitpid(self.process, 0)
        os.close(self.terminal)

    def quit(self):
        """Leaves the program as a user does."""
        self.type("/quit\r")
        os.waitpid(self.process, 0)
        os.close(self.terminal)
