"""A program in a terminal: a pseudo-terminal and just enough of an emulator to read its screen. Needs no package."""

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
import unicodedata

SEQUENCE = re.compile(r"\x1b(?:\[([0-9;:?<=>]*)([ -/]*[@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^][^\x1b]*\x1b\\|[()][0-9A-Z]|[=>78cDEHM])")


class Terminal:
    """Runs a program on a screen of this size."""

    def __init__(self, command, rows=120, columns=160, **options):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
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
        pending = ""
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
                pending = self._take(pending + decoder.decode(data))
                self._changed.notify_all()

    def _take(self, text):
        """Draws the text. Returns a sequence that is not complete yet."""
        at = 0
        while at < len(text):
            letter = text[at]
            if letter == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found:
                    if len(text) - at < 4096:
                        return text[at:]
                    at += 1
                    continue
                if found.group(2):
                    self._control(found.group(1), found.group(2))
                at = found.end()
                continue
            at += 1
            if letter == "\r":
                self.column = 0
            elif letter == "\n":
                self.row = min(self.row + 1, self.rows - 1)
            elif letter == "\b":
                self.column = max(0, self.column - 1)
            elif letter >= " ":
                self._draw(letter)
        return ""

    def _draw(self, letter):
        if unicodedata.combining(letter) or letter in "\u200d\ufe0f":
            return
        width = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if self.column < self.columns:
            self.cells[self.row][self.column] = letter
            for beside in range(self.column + 1, min(self.column + width, self.columns)):
                self.cells[self.row][beside] = ""
        self.column += width

    def _control(self, parameters, kind):
        numbers = [int(part) if part.isdigit() else 0 for part in parameters.split(";")]
        first = numbers[0] or 1
        if kind in "Hf":
            second = numbers[1] if len(numbers) > 1 and numbers[1] else 1
            self.row, self.column = min(first, self.rows) - 1, second - 1
        elif kind == "A":
            self.row = max(0, self.row - first)
        elif kind == "B":
            self.row = min(self.rows - 1, self.row + first)
        elif kind == "C":
            self.column += first
        elif kind == "D":
            self.column = max(0, self.column - first)
        elif kind == "G":
            self.column = first - 1
        elif kind == "d":
            self.row = min(first, self.rows) - 1
        elif kind == "J":
            self._erase(self.row + 1, self.rows)
            self._control(parameters, "K")
            if numbers[0] in (2, 3):
                self._erase(0, self.rows)
        elif kind == "K":
            start = 0 if numbers[0] in (1, 2) else self.column
            end = self.column + 1 if numbers[0] == 1 else self.columns
            for column in range(start, min(end, self.columns)):
                self.cells[self.row][column] = " "

    def _erase(self, first, end):
        for row in range(first, end):
            self.cells[row] = [" "] * self.columns

    def text(self):
        with self._changed:
            return "\n".join("".join(row).rstrip() for row in self.cells)

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
