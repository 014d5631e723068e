"""Load on `ova serve` from a second process, beside a bare loop over the same batches in this one.

A model of texts (three topics, 10,000 made sentences) is trained in half a minute. The bare loop calls what
`ova predict` calls, one batch after the other, with nothing around it. The clients are threads of a process
of their own, each with one connection, which ask again as soon as they are answered. The machine is shared
by server and clients: with two cores, each has one.

    python benchmarks/serve.py --seconds 20
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit

import numpy as np

WORDS = 400
LOOP = 1.0  # seconds of the bare loop before and after each case
CASES = [(1, 1), (8, 1), (8, 16), (8, 64)]  # clients, rows of a request


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    draw = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        topic = int(draw.integers(3))
        words = draw.integers(topic * WORDS // 4, topic * WORDS // 4 + WORDS // 2, 9)
        rows.append((" ".join(f"word{w}" for w in words), f"topic {topic}"))
    return rows


def trained(folder: Path) -> Path:
    import csv

    with (folder / "data.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *sentences(10_000, 0)])
    train = ["train", str(folder / "data.csv"), "--text", "text", "--label", "label"]
    train += ["--out", str(folder / "model"), "--set", "epochs=1", "--score", "max_p"]
    subprocess.run([sys.executable, "-m", "ova", *train], check=True, capture_output=True)
    return folder / "model"


def bare(model: Path, rows: int, seconds: float) -> float:
    """Rows per second of the loop alone."""
    from ova.modelfolder.answer import answer
    from ova.modelfolder.folder import load
    from ova.userdata.rows import Frame

    loaded, done = load(model), 0
    texts = [text for text, _ in sentences(rows * 20, 1)]
    frames = [Frame({"text": texts[i : i + rows]}) for i in range(0, len(texts), rows)]
    for frame in frames[:3]:
        list(answer(loaded, frame, 1, None))
    started = perf_counter()
    while perf_counter() - started < seconds:
        done += len(list(answer(loaded, frames[done // rows % 20], 1, None)))
    return done / (perf_counter() - started)


@contextmanager
def server(model: Path, log: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "ova", "serve", str(model), "--port=0", f"--log={log}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while not (found := re.search(r"at (http://\S+);", said)):
            said += process.stderr.readline()
        try:
            yield found[1]
        finally:
            process.terminate()
            process.wait()


def load_on(at: str, clients: int, rows: int, seconds: float) -> None:
    """Ask for so long, and print what came of it as JSON; runs in a process of its own."""
    took: list[float] = []
    errors: list[str] = []
    address = urlsplit(at).netloc
    ends = perf_counter() + seconds

    def client(which: int) -> None:
        texts = [text for text, _ in sentences(rows * 20, 2 + which)]
        bodies = [json.dumps({"texts": texts[i : i + rows]}) for i in range(0, len(texts), rows)]
        connection, n = HTTPConnection(address, timeout=60), 0
        while perf_counter() < ends:
            started = perf_counter()
            head = {"content-type": "application/json"}
            connection.request("POST", "/predict", bodies[n % 20], head)
            reply = connection.getresponse()
            content = reply.read()
            took.append(perf_counter() - started)
            if reply.status != 200 or content.count(b'"id":') != rows:
                errors.append(f"{reply.status}")
            n += 1

    threads = [threading.Thread(target=client, args=(which,)) for which in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ms = np.quantile(took, [0.5, 0.99]) * 1000
    print(json.dumps({"n": len(took), "p50": ms[0], "p99": ms[1], "errors": len(errors)}))


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--seconds", type=float, default=20.0, help="of load, over all cases together")
    ask.add_argument("--load", nargs=4, help=argparse.SUPPRESS)
    given = ask.parse_args()
    if given.load:
        at, clients, rows, seconds = given.load
        load_on(at, int(clients), int(rows), float(seconds))
        return
    each = given.seconds / len(CASES)
    names = (
        "clients",
        "rows a request",
        "requests/s",
        "rows/s",
        "bare loop",
        "share",
        "p50",
        "p99",
    )
    print(f"| {' | '.join(names)} | errors |\n|{'---|' * (len(names) + 1)}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model, log, total = trained(folder), folder / "log.jsonl", 0
        with server(model, log) as at:
            for clients, rows in CASES:
                # Before and after, because other work on the machine comes and goes.
                before = bare(model, clients * rows, LOOP)
                asked = ["--load", at, str(clients), str(rows), str(each)]
                done = subprocess.run(
                    [sys.executable, __file__, *asked], check=True, capture_output=True, text=True
                )
                found = json.loads(done.stdout)
                total += found["n"] * rows
                loop = (before + bare(model, clients * rows, LOOP)) / 2
                rate = found["n"] * rows / each
                print(
                    f"| {clients} | {rows} | {rate / rows:.0f} | {rate:.0f} | {loop:.0f} | {rate / loop:.0%} "
                    f"| {found['p50']:.1f} ms | {found['p99']:.1f} ms | {found['errors']} |"
                )
        lines = log.read_text().count("\n")
    print(f"\n{total} rows were answered and {lines} are in the log.")


if __name__ == "__main__":
    main()
