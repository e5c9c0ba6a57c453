"""The extensions that come with mcudeploy."""

from __future__ import annotations

from mcudeploy.extension import Extension

EXTENSIONS = (
    Extension(
        "learned",
        readers="mcudeploy.extensions.learned.class_names:with_numbers",
        rules="mcudeploy.extensions.learned.tables:RULES",
        lowerings="mcudeploy.extensions.learned.tables:LOWERINGS",
        ways_out="mcudeploy.extensions.learned.tables:WAYS_OUT",
    ),
)
