"""Runs all attacks, or those whose name contains one of the words, and counts those that failed to do harm."""

import concurrent.futures
import sys
import time
import traceback

import bounds
import leaks
import processes
import questions
import sandbox
import tenants
import tools

GROUPS = {"questions": questions, "leaks": leaks, "tools": tools, "processes": processes, "sandbox": sandbox,
          "bounds": bounds, "tenants": tenants}
# Most attacks wait as a user would, so several run in parallel.
PARALLEL = 4


def cases():
    return [(f"{group}: {name}", attack) for group, module in GROUPS.items() for name, attack in module.cases()]


def run(index):
    """The error of a successful attack, or None."""
    name, attack = cases()[index]
    try:
        attack()
    except Exception as error:
        return "".join(traceback.format_exception(error, limit=-2))
    return None


def main(words):
    chosen = [index for index, (name, _) in enumerate(cases()) if not words or any(word in name for word in words)]
    names = [name for name, _ in cases()]
    began, broken = time.time(), []
    with concurrent.futures.ProcessPoolExecutor(PARALLEL) as pool:
        for index, wrong in zip(chosen, pool.map(run, chosen)):
            print(f"{'BROKEN' if wrong else 'held  '} {names[index]}", flush=True)
            if wrong:
                broken.append(names[index])
                print(wrong, flush=True)
    print(f"{len(chosen)} tried, {len(chosen) - len(broken)} held, {time.time() - began:.0f} s")
    for name in broken:
        print(f"broken: {name}")
    print(f"{len(chosen) - len(broken)} passed, {len(broken)} failed")
    return 1 if broken or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
