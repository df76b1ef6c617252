"""The plain page that daemons show people: a title, facts, tables, links, and nothing that runs.

Everything handed in is text and comes out escaped; `Html` is what these functions have made. Names of applications,
users and files are anybody's choice.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NewType

from aiohttp import web

Html = NewType("Html", str)

#: A page needs no script, no picture and no other place, so it may have none.
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE: Final = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1b1f23;"
    "background:#fff}h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse}"
    "th,td{text-align:left;vertical-align:top;padding:.25rem .9rem .25rem 0;border-bottom:1px solid #d8dee4}"
    "td{white-space:pre-wrap;overflow-wrap:anywhere}a{color:#0b57d0}footer{margin-top:2.5rem;color:#57606a}"
    "@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}a{color:#6ea8fe}}"
)


def text(value: object) -> Html:
    return Html(escape(str(value), quote=True))


def link(url: str, label: object) -> Html:
    """Make a link; plain text where the address is not one of the web's."""
    if not url.startswith(("http://", "https://", "/")) or url.startswith("//"):
        return text(label)
    return Html(f'<a href="{escape(url, quote=True)}" rel="noreferrer">{text(label)}</a>')


def facts(pairs: Iterable[tuple[str, Html]]) -> Html:
    """Make a table of names and values, one pair a line."""
    rows = "".join(f"<tr><th>{text(name)}</th><td>{value}</td></tr>" for name, value in pairs)
    return Html(f"<table>{rows}</table>")


def table(heads: Sequence[str], rows: Iterable[Sequence[Html]]) -> Html:
    head = "".join(f"<th>{text(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return Html(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")


def section(title: str, body: Html) -> Html:
    return Html(f"<h2>{text(title)}</h2>{body}")


def page(title: str, *parts: Html, status: int = 200) -> web.Response:
    body = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{text(title)}</h1>{''.join(parts)}</body></html>"
    )
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
    return web.Response(text=body, content_type="text/html", charset="utf-8", status=status, headers=headers)
