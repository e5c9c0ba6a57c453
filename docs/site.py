"""Hooks of mkdocs: README.md is the first page; files outside of docs/ that are linked are in the site."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```)", re.M | re.S)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add README.md, and what pages link to."""
    open_pages = [ROOT / "README.md", *(Path(it.abs_src_path) for it in files.documentation_pages())]
    known = set(open_pages)
    files.append(File.generated(config, "index.md", abs_src_path=str(open_pages[0])))
    while open_pages:
        page = open_pages.pop()
        for target in LINK.findall(page.read_text("utf-8")):
            file = (page.parent / target[0]).resolve()
            if file in known or not file.is_file() or file.is_relative_to(ROOT / "docs"):
                continue
            known.add(file)
            files.append(File.generated(config, place(file), abs_src_path=str(file)))
            open_pages += [file] if file.suffix == ".md" else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as they are in the repository, made links of the site."""
    source = Path(str(page.file.abs_src_path))
    at = PurePosixPath(page.file.src_uri).parent

    def turned(link: re.Match[str]) -> str:
        file = (source.parent / link[1]).resolve()
        return f"]({os.path.relpath(place(file), at)}{link[2] or ''})" if file.is_file() else link[0]

    parts = FENCED.split(markdown)
    parts[::2] = [LINK.sub(turned, part) for part in parts[::2]]
    return "".join(parts)


def place(file: Path) -> str:
    """Where a file of the repository is in the site."""
    name = file.relative_to(ROOT).as_posix()
    return "index.md" if name == "README.md" else name.removeprefix("docs/")
