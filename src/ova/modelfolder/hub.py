"""Model folders on the Hugging Face Hub: pushed with a card, and loaded by hf://owner/name."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory

from ova.errors import BadInput
from ova.modelfolder.card import card
from ova.modelfolder.folder import PARTS_OF_ANY, facts_of
from ova.modelfolder.names import MODEL, REPORT, SCHEME

CARD = "README.md"
ADDRESS = re.compile(r"hf://(?P<repo>\w[\w.-]*/\w[\w.-]*)(?:@(?P<revision>[\w./-]+))?", re.ASCII)


@dataclass(frozen=True)
class Address:
    """A repository of a model, and which version of it; the newest if none is named."""

    repo: str
    revision: str | None = None


def address_of(text: str) -> Address:
    """The address in a text.

    >>> address_of("hf://ann/mails@v2")
    Address(repo='ann/mails', revision='v2')
    """
    found = ADDRESS.fullmatch(text)
    if found is None:
        raise BadInput(
            f"{text!r} is no address of a model; wanted hf://OWNER/NAME or hf://OWNER/NAME@REVISION"
        )
    return Address(found["repo"], found["revision"])


def fetch(text: str) -> Path:
    """The folder of the model at an address, in the cache of the Hub; what is not of a model stays there.

    The files are checked by their hashes when they are loaded, and nothing in them can run code.
    """
    import huggingface_hub as hub

    address = address_of(text)
    names = [MODEL, REPORT, *PARTS_OF_ANY]
    with understood(text):
        return Path(
            hub.snapshot_download(address.repo, revision=address.revision, allow_patterns=names)
        )


def push(folder: Path, repo: str, public: bool = False) -> str:
    """Upload a model with its report and a card; a repository that is new is private. Gives its address.

    Of the run behind it nothing is uploaded. The rows that a score of neighbours keeps are parts of the model.
    """
    import huggingface_hub as hub

    facts = facts_of(folder)
    address = address_of(f"{SCHEME}{repo}")
    if address.revision is not None:
        raise BadInput(f"{repo!r}: a model is pushed to OWNER/NAME, without a revision")
    with TemporaryDirectory() as place:
        for name in (MODEL, *facts["parts"], REPORT):
            if (folder / name).is_file():
                (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
                copyfile(folder / name, Path(place) / name)
        (Path(place) / CARD).write_text(card(folder, address.repo), encoding="utf-8")
        api = hub.HfApi()
        with understood(repo):
            api.create_repo(address.repo, private=not public, exist_ok=True)
            api.upload_folder(
                repo_id=address.repo, folder_path=place, commit_message="A model of ova train"
            )
    return f"{SCHEME}{address.repo}"


@contextmanager
def understood(what: str) -> Iterator[None]:
    """What the Hub refuses, or a network that is not there, as a sentence."""
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        yield
    except (HfHubHTTPError, LocalEntryNotFoundError, ConnectionError, ValueError) as error:
        said = next(
            (line for line in str(error).splitlines() if line.strip()), type(error).__name__
        )
        raise BadInput(
            f"{what}: the Hub says: {said}; is the name right, is there a network, and are you logged in "
            "(hf auth login)?"
        ) from error
