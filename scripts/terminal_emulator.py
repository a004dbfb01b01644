"""Just enough of a terminal emulator to tell what is on the screen. Needs no package."""

import re
import unicodedata

SEQUENCE = re.compile(
    r"\x1b(?:\[([0-9;:?<=>]*)([ -/]*[@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^X][^\x1b]*\x1b\\|[()][A-Za-z0-9]|[=>78cDEHM])"
)
# A sequence that is longer than this is not one.
LONGEST_SEQUENCE = 4096


class Emulator:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.y = self.x = 0
        self.rest = ""

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        at = 0
        while at < len(text):
            character = text[at]
            if character == "\x1b":
                found = SEQUENCE.match(text, at)
                if not found:
                    # An incomplete sequence continues in the next chunk.
                    if len(text) - at < LONGEST_SEQUENCE:
                        self.rest = text[at:]
                        return
                    at += 1
                    continue
                if found.group(2):
                    self.control(found.group(1), found.group(2))
                at = found.end()
                continue
            self.character(character)
            at += 1

    def control(self, parameters, final):
        if re.search("[?<=>]", parameters) or len(final) > 1:
            return
        values = [int(number) if number.isdigit() else 0 for number in parameters.split(";")]
        first = values[0]
        if final in "Hf":
            self.y = min(max(first, 1), self.rows) - 1
            self.x = min(max(values[1] if len(values) > 1 else 1, 1), self.columns) - 1
        elif final == "A":
            self.y = max(self.y - max(first, 1), 0)
        elif final == "B":
            self.y = min(self.y + max(first, 1), self.rows - 1)
        elif final == "C":
            self.x = min(self.x + max(first, 1), self.columns - 1)
        elif final == "D":
            self.x = max(self.x - max(first, 1), 0)
        elif final == "G":
            self.x = min(max(first, 1), self.columns) - 1
        elif final == "d":
            self.y = min(max(first, 1), self.rows) - 1
        elif final == "J" and first in (2, 3):
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
        elif final == "J":
            self.cells[self.y][self.x:] = [" "] * (self.columns - self.x)
            for row in range(self.y + 1, self.rows):
                self.cells[row] = [" "] * self.columns
        elif final == "K":
            start, end = {0: (self.x, self.columns), 1: (0, self.x + 1), 2: (0, self.columns)}.get(first, (0, 0))
            self.cells[self.y][start:end] = [" "] * (end - start)

    def character(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.line_feed()
        elif character == "\b":
            self.x = max(self.x - 1, 0)
        elif character < " " or unicodedata.combining(character) or character in "\u200d\ufe0f":
            return
        else:
            wide = 2 if unicodedata.east_asian_width(character) in "WF" else 1
            if self.x + wide > self.columns:
                self.x = 0
                self.line_feed()
            self.cells[self.y][self.x] = character
            if wide == 2 and self.x + 1 < self.columns:
                self.cells[self.y][self.x + 1] = ""
            self.x += wide

    def line_feed(self):
        if self.y + 1 < self.rows:
            self.y += 1
        else:
            self.cells = self.cells[1:] + [[" "] * self.columns]

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)
