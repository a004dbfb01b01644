"""A minimal terminal emulator that tells what is on the screen."""

import re
import unicodedata

SEQUENCE = re.compile(r"\x1b\[([?>=]?)([0-9;]*)([A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_^X].*?\x1b\\|\x1b[()][A-Za-z0-9]|\x1b[=>78cM]", re.S)


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
                    if len(text) - at < 64:
                        self.rest = text[at:]
                        return
                    at += 1
                    continue
                if found.group(3):
                    self.control(found.group(1), found.group(2), found.group(3))
                at = found.end()
                continue
            self.character(character)
            at += 1

    def control(self, private, numbers, final):
        values = [int(number) if number else 0 for number in numbers.split(";")]
        first = values[0]
        if private:
            return
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
        elif final == "J" and first == 2:
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
        elif ord(character) < 32 or unicodedata.combining(character):
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
