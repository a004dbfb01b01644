"""The rules for displaying thinking, one test for each design that states them."""

import re
import time

from web_page import IDLE, answered, ask, heads, shapes

RUNNING = "document.querySelector('.thinking[data-state=running]')"


def use_model(tab, model):
    ask(tab, f"/model {model}")
    tab.wait(f"document.querySelector('#model').value === '{model}'", what=f"the model {model}")


def style(tab, selector, *names):
    return tab.run(f"(() => {{ const s = getComputedStyle(document.querySelector('{selector}')); return {list(names)!r}.map(n => s[n]); }})()")


def brightness(colour):
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return 0.3 * red + 0.59 * green + 0.11 * blue


def test_seed_000_muted_while_it_streams_then_one_line_that_opens(setup):
    tab = setup.tab()
    ask(tab, "slow 2")
    tab.wait(RUNNING)
    muted, = style(tab, ".thinking-body", "color")
    tab.wait(f"{IDLE} && document.querySelector('.answer')")
    normal, = style(tab, ".answer", "color")
    assert muted != normal, "thinking is muted, the answer is not"
    assert shapes(tab) == ["header"] and "“Thought 0, slowly." in heads(tab)[0], heads(tab)
    tab.click(".thinking-head")
    tab.wait("document.querySelector('.thinking').dataset.shape === 'open'")
    assert float(style(tab, ".thinking-body", "borderLeftWidth")[0].removesuffix("px")) >= 1, "a line at the left"
    tab.click(".thinking-head")
    tab.wait("document.querySelector('.thinking').dataset.shape === 'header'")
    answered(tab, "story")
    order = tab.run("[...document.querySelectorAll('.thinking, .tool, .answer')].map(e => e.className.split(' ').at(-1))")
    assert order == ["thinking", "answer", "thinking", "tool", "thinking", "tool", "thinking", "answer"], order


def test_seed_003_hidden_thinking_is_kept_and_sent_back(setup):
    tab = setup.tab()
    tab.run("document.activeElement.blur()")
    tab.key("t")
    tab.key("t")
    tab.wait("document.querySelector('#view').value === 'off'")
    answered(tab, "story")
    assert shapes(tab) == ["hidden"] * 3, shapes(tab)
    ask(tab, "/sent")
    tab.wait("document.querySelector('.note.table')")
    rows = tab.run("[...document.querySelectorAll('.note.table tbody tr')].map(e => e.children[1].textContent)")
    assert rows.count("field") == 2, rows
    tab.run("document.activeElement.blur()")
    tab.key("t")
    tab.wait("document.querySelector('#view').value === 'full'")
    # The blocks follow in the next frame.
    tab.wait("[...document.querySelectorAll('.thinking')].filter(e => e.dataset.shape === 'open').length === 3")


def test_seed_004_titles_while_it_thinks_and_a_duration_when_it_is_done(setup):
    tab = setup.tab()
    use_model(tab, "sim/openai")
    ask(tab, "sim: summaries 3 rate=8")
    seen = []

    def watch(shape, titles):
        until = time.monotonic() + 90
        while len(set(seen)) < titles:
            assert time.monotonic() < until, (shape, seen)
            title = tab.run(f"{RUNNING}?.dataset.shape === '{shape}' ? {RUNNING}.querySelector('.thinking-detail').textContent.split(' · ')[0] : ''")
            if title and "token" not in title:
                seen.append(title)
            time.sleep(0.03)

    # Generating and open: the title of the current item, and its text.
    watch("tail", 1)
    assert tab.run(f"{RUNNING}.querySelector('.thinking-body').textContent").count(seen[0]) >= 1
    # Generating and folded: the title of the current item. The first click opens all of it, the second folds it.
    tab.click(".thinking-head")
    tab.wait(f"{RUNNING}?.dataset.shape === 'open'", what="open while it thinks")
    tab.click(".thinking-head")
    tab.wait(f"{RUNNING}?.dataset.shape === 'header'", what="folded while it thinks")
    watch("header", 2)
    tab.wait(f"{IDLE} && document.querySelector('.answer')")
    # Done and folded: how long it took.
    assert re.match(r"Thought for \d+ s", heads(tab)[0]), heads(tab)
    before = heads(tab)
    # Done and open: all items as Markdown.
    tab.click(".thinking-head")
    tab.wait("document.querySelectorAll('.thinking-body strong').length === 3", what="three titles as Markdown")
    assert "**" not in tab.run("document.querySelector('.thinking-body').textContent")
    # The same if it was open all the time.
    ask(tab, "sim: summaries 2 rate=20")
    tab.wait(f"{RUNNING}?.dataset.shape === 'tail'", what="the next thinking")
    tab.run("[...document.querySelectorAll('.thinking-head')].at(-1).click()")
    tab.wait(f"{IDLE} && document.querySelectorAll('.answer').length === 2")
    tab.wait("[...document.querySelectorAll('.thinking-body')].at(-1).querySelectorAll('strong').length === 2", what="Markdown when it is done")
    before = heads(tab)
    # A stored session is shown as the live one was.
    tab.reload()
    tab.wait("document.querySelector('.thinking-head')")
    assert heads(tab) == before, (heads(tab), before)


def test_req_think_007_shaded_italic_and_hidden_by_the_setting(setup):
    tab = setup.tab()
    answered(tab, "story")
    tab.click(".thinking-head")
    tab.wait("document.querySelector('.thinking').dataset.shape === 'open'")
    for scheme, is_darker in (("light", True), ("dark", False)):
        tab.media(prefers_color_scheme=scheme)
        slant, shade = style(tab, ".thinking-body", "fontStyle", "backgroundColor")
        page, = style(tab, "body", "backgroundColor")
        assert slant == "italic", slant
        assert shade != page and (brightness(shade) < brightness(page)) == is_darker, (scheme, shade, page)
    ask(tab, "/set reasoning.includeInResponse false")
    tab.wait("[...document.querySelectorAll('.thinking')].every(e => e.hidden)", what="no thinking")
    ask(tab, "/set reasoning.includeInResponse true")
    tab.wait("![...document.querySelectorAll('.thinking')].some(e => e.hidden)", what="thinking again")
