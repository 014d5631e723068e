"""Two hosts on one machine: network namespaces with addresses of their own, else its loopback."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PORT = 29_517


@dataclass
class Host:
    """A place to start processes, reached by the others at its address."""

    address: str
    namespace: str = ""
    interface: str = "lo"
    started: list[subprocess.Popen] = field(default_factory=list)

    def start(self, *command, **env):
        """Start a command here; what it says is kept."""
        inside = ["ip", "netns", "exec", self.namespace] if self.namespace else []
        known = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": self.interface, **env}
        process = subprocess.Popen(
            [*inside, *command],
            env=known,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def lose(self):
        """Kill all that runs here at once, as a machine that loses its power does."""
        for process in self.started:
            for pid in [process.pid, *below(process.pid)]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:  # it has just ended
                    continue
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self.started.clear()


def below(pid):
    """The processes that a process started, and those that they did."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    parents = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    found = [pid]
    for known in found:  # it grows as it is gone through
        found += [child for child, parent in parents if parent == known]
    return found[1:]


@contextmanager
def two_hosts():
    """Two hosts that see each other, gone with all their processes at the end."""
    with ExitStack() as stack:
        hosts = _namespaces(stack) or [Host("127.0.0.1"), Host("127.0.0.1")]
        for host in hosts:
            stack.callback(host.lose)
        yield hosts


def _namespaces(stack):
    """Two network namespaces joined by a cable; none where this system does not let us make them."""
    if sys.platform != "linux" or not shutil.which("ip") or os.geteuid() != 0:
        return []

    def ip(*words):
        return subprocess.run(["ip", *words], capture_output=True, check=True)

    own = f"{os.getpid():x}"
    names, ends = [f"ova-{own}-{i}" for i in "ab"], [f"v{own}{i}" for i in "ab"]
    addresses = ["10.77.0.1", "10.77.0.2"]
    try:
        for name in names:
            ip("netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
            stack.callback(_without_names(name))
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for name, end, address in zip(names, ends, addresses, strict=True):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", end, "up")
    except (subprocess.CalledProcessError, OSError):
        return []
    return [Host(*each) for each in zip(addresses, names, ends, strict=True)]


def _without_names(namespace):
    """Answer no question about names: nobody is there to ask, and each would wait for half a minute."""
    folder = Path("/etc/netns", namespace)
    folder.mkdir(parents=True)
    (folder / "resolv.conf").write_text("")
    return lambda: shutil.rmtree(folder)


def torchrun(hosts, *words, out, options=(), late=None):
    """One process of `ova run` on each host, by torchrun; `late()` is called before the second."""
    commands = []
    for number, host in enumerate(hosts):
        if number and late:
            late()
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1"]
        command += ["--nnodes", str(len(hosts)), "--node-rank", str(number), *options]
        command += ["--master-addr", hosts[0].address, "--master-port", str(PORT)]
        command += ["-m", "ova", "run", *words, "--seeds", "1", "--accelerator", "cpu"]
        command += ["--nodes", str(len(hosts)), "--devices", "1", "--out", str(out)]
        commands.append(host.start(*command))
    return commands
