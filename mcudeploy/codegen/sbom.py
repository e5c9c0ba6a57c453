"""The bill of materials of a library as CycloneDX 1.5 JSON: its parts, with hashes and licences.

The same library has the same bytes: a time stamp exists only if SOURCE_DATE_EPOCH states one.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from mcudeploy import __version__
from mcudeploy.codegen.folder import Content, digests_of
from mcudeploy.codegen.licences import CODE_LICENCE, MODEL_LICENCE, licence_of
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.common.errors import UsageError

SBOM_NAME = "sbom.cdx.json"
_NAMESPACE = uuid.UUID("6d637564-6570-4c6f-9900-73626f6d0001")
JsonObject = dict[str, Any]


def bill_of_materials(members: Sequence[LibraryModel], name: str, files: Mapping[str, Content]) -> str:
    """Return the bill of library `name` with these files. UsageError if SOURCE_DATE_EPOCH is not a time."""
    digests = digests_of(files)
    runtime = _component("library", "runtime", "mcudeploy-runtime", CODE_LICENCE)
    models = [
        _component(
            "machine-learning-model", f"model:{each.program.prefix}", each.source.file_name, MODEL_LICENCE
        )
        | {"hashes": _hashes(each.source.sha256)}
        for each in members
    ]
    components = [
        runtime | {"version": __version__},
        *models,
        *(
            _component("file", f"file:{path}", path, licence_of(path, files[path]))
            | {"hashes": _hashes(digest)}
            for path, digest in digests.items()
        ),
    ]
    root = _component("library", "library", name, CODE_LICENCE) | {"version": __version__}
    metadata: JsonObject = {
        **_timestamp(),
        "tools": {"components": [{"type": "application", "name": "mcudeploy", "version": __version__}]},
        "component": root,
    }
    parts = [component["bom-ref"] for component in components]
    content = {
        "metadata": metadata,
        "components": components,
        "dependencies": [{"ref": "library", "dependsOn": parts}],
    }
    serial = uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}"}
    return json.dumps({**head, "version": 1, **content}, indent=1) + "\n"


def _component(kind: str, ref: str, name: str, licence: str) -> JsonObject:
    """Return a component; `name` is CycloneDX's key for licences that need not have an SPDX id."""
    key = "id" if licence == CODE_LICENCE else "name"
    return {"type": kind, "bom-ref": ref, "name": name, "licenses": [{"license": {key: licence}}]}


def _hashes(digest: str) -> list[JsonObject]:
    return [{"alg": "SHA-256", "content": digest}]


def _timestamp() -> JsonObject:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return {}
    try:
        moment = datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"SOURCE_DATE_EPOCH is {epoch!r}, not seconds since 1970") from error
    return {"timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}
