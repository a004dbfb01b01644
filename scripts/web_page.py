"""What the tests of the page share: asking, and reading what is shown."""

import time

IDLE = "document.querySelector('#stop').hidden"


def ask(tab, text):
    tab.run("document.getElementById('input').focus()")
    tab.type(text)
    tab.key("Enter")


def answered(tab, text):
    """Asks, allows every question once, and waits for the end of the turn."""
    before = tab.run("document.querySelectorAll('.entry.user').length")
    ask(tab, text)
    tab.wait(f"document.querySelectorAll('.entry.user').length > {before}", what="the prompt")
    while True:
        tab.wait(f"{IDLE} || document.querySelector('#question button.allow:enabled')", what="the end of the turn")
        if tab.run("!!document.querySelector('#question button.allow:enabled')"):
            tab.click("#question button.allow")
            time.sleep(0.3)
        elif tab.run(IDLE):
            return


def shapes(tab):
    return tab.run("[...document.querySelectorAll('.thinking')].map(e => e.hidden ? 'hidden' : e.dataset.shape)")


def heads(tab):
    return tab.run("[...document.querySelectorAll('.thinking-head')].map(e => e.innerText.replace(/\\s+/g, ' '))")


def stored(tab, block=0):
    """The thinking that the store has for the last answer."""
    return tab.run("(async () => { const id = location.pathname.slice(3);"
                   "const e = [...document.querySelectorAll('.entry.assistant')].at(-1).dataset.id;"
                   f"return (await (await fetch(`/api/sessions/${{id}}/blocks/${{e}}.{block}`)).json()).text; }})()")


def shown(tab):
    return tab.run("[...document.querySelectorAll('.entry.assistant')].at(-1).querySelector('.thinking-body').textContent")


def blocks(tab):
    """What the page shows of the conversation: kind and text of each block, in order."""
    return tab.run("""[...document.querySelectorAll('.prompt, .thinking, .answer, .tool')].filter(e => !e.hidden).map(e => {
      if (e.matches('.prompt')) return ['prompt', e.textContent];
      if (e.matches('.answer')) return ['answer', [...e.children].map(p => p.textContent).join('\\n\\n')];
      if (e.matches('.tool')) return ['tool', e.querySelector('.tool-name').textContent];
      return ['thinking', e.querySelector('.thinking-body').textContent];
    })""")
