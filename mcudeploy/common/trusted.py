"""Lists of what the user has allowed to run, each entry by the hash of all that it names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mcudeploy.common.errors import ConfigError
from mcudeploy.common.files import read_regular, write_file
from mcudeploy.common.system.folders import config_folder

_MOST_BYTES = 2**26


@dataclass(frozen=True, slots=True)
class TrustList:
    """The list of trusted boards or extensions in the user's configuration. `kind`: "boards", for example."""

    kind: str

    def __contains__(self, digest: str) -> bool:
        """Whether the user has allowed this hash. Raises ConfigError for a list that cannot be read."""
        try:
            lines = read_regular(self._path, _MOST_BYTES).decode().splitlines()
        except FileNotFoundError:
            return False
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self._path}, the list of trusted {self.kind}, cannot be read: {error}"
            ) from error
        return digest in {line.partition(" ")[0] for line in lines}

    def add(self, digest: str, name: str) -> None:
        """Allow a hash; `name` is for readers of the list. Raises ConfigError."""
        if digest in self:
            return
        path = self._path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            known = path.read_text("utf-8") if path.exists() else ""
            write_file(path, f"{known}{digest}  {name}\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{path}, the list of trusted {self.kind}, cannot be written: {error}"
            ) from error

    @property
    def _path(self) -> Path:
        return config_folder() / "mcudeploy" / f"trusted-{self.kind}"
