"""Read a CSV table of nodes as a fleet on which nothing runs yet."""

from __future__ import annotations

import re
from itertools import product

from ...errors import CmsError, FileError
from ...files.csv_records import folded
from ...files.source import StrPath
from ...files.tables import Cell, TableRow, read_table
from ...values.frozen import FrozenMap
from ...values.names import nearest
from ..hardware import Gpu, list_gpus
from ..hardware.catalogue import gpu_called
from ..serving.table_guards import refuse_unknown_columns
from .model import PRICE, Deployment, FleetGpu, FleetNode, driver_branch

NODE_COLUMNS = ("node", "gpu", "count")
_OPTIONAL = ("driver", "zone", PRICE)
#: GPUs in a row of the table: one object each, so that a slip of a key takes no machine's memory.
_MOST = 10_000
#: What is no label: what it looks like, what is expected, and what to do. Labels have no order
#: among a node's GPUs.
_NO_LABELS = (
    (
        re.compile(r"(gpu_)?(index|indices|idx|minor|minor_number|uuid)|gpu_(number|ids?)"),
        "the number of a GPU",
        "a row a node and type of GPU: they are numbered from 0 as they stand",
        "remove it; 'cms observe' reads GPUs with the numbers that they have",
    ),
    (
        re.compile(r"(.*_)?(prices?|costs?|usd|eur|gbp|rates?)(_.*)?"),
        "a price", PRICE, f"rename it to {PRICE}, or remove it",
    ),
    (
        re.compile(r"(.*_)?(max|maximum|limits?|caps?|budget)(_.*)?"),
        "a limit", "limits in fleet.toml: max of [gpus], [[group]]", "remove it",
    ),
)  # fmt: skip


def read_nodes(path: StrPath, devices: dict[str, Gpu] | None = None) -> Deployment:
    """Read nodes with empty GPUs from a CSV table.

    `path`: Columns ``node,gpu,count`` and, if wanted, ``driver``, ``zone`` and ``price_per_hour``
    (of each of the node's GPUs); further columns become labels, but for a GPU's ``index``, other
    prices and limits, which are refused. A node with GPUs of several types
    has a row for each; its GPUs are numbered in the order of the rows. `devices`: ``{key: Gpu}``:
    devices of one's own, beside the catalogue's.

    A FileError has file, line and column.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "nodes.csv"
    >>> _ = path.write_text(
    ...     "node,gpu,count,zone\\nnode-a,a100-80gb,8,east\\nnode-b,a30-24gb,2,west\\n"
    ... )
    >>> print(read_nodes(path))
    10 GPUs on 2 nodes, 0 instances
    """
    found: dict[str, tuple[list[FleetGpu], int, dict[str, str]]] = {}
    table = read_table(path, NODE_COLUMNS, _OPTIONAL)
    refuse_unknown_columns(table, _OPTIONAL)
    for column, (pattern, what, expected, fix) in product(table.extra, _NO_LABELS):
        if pattern.fullmatch(folded(column)):
            said = f"the column {column!r} looks like {what}, which is no label"
            name = table.source.name
            raise FileError(name, said, line=table.line, expected=expected, fix=fix)
    for row in table:
        name, stated = row["node"].word(), _facts(row)
        cards, line, before = found.setdefault(name, ([], row.line, stated))
        card = _device(row["gpu"], devices or {})
        if any(each.gpu == card for each in cards):
            what = f"node {name!r} has a second row for {card.key}"
            raise row["gpu"].error(what, fix="add its count to the first one")
        count = row["count"].integer(minimum=1)
        if count > _MOST:
            what = f"node {name!r} has {count} GPUs"
            raise row["count"].error(what, expected=f"at most {_MOST} on a node")
        cards += [FleetGpu(name, len(cards) + i, card) for i in range(count)]
        for key in sorted({*before, *stated}):
            if before.get(key) != stated.get(key):
                says = f"{key} {stated.get(key)!r} here and {before.get(key)!r} in line {line}"
                same = "the same in every row of a node"
                raise row.error(f"node {name!r} has {says}", expected=same)
    nodes = []
    for name, (cards, _, labels) in found.items():
        driver = labels.pop("driver", None)
        nodes.append(FleetNode(name, tuple(cards), FrozenMap(labels), driver))
    return Deployment(tuple(nodes))


def _facts(row: TableRow) -> dict[str, str]:
    facts = {name: row[name].text for name in _OPTIONAL if name in row and row[name].text}
    if "driver" in facts:
        try:
            driver_branch(facts["driver"])
        except CmsError as fault:
            raise row["driver"].error(str(fault)) from None
    if PRICE in facts:
        row[PRICE].number()
    return facts | {name: text for name, text in row.extra.items() if text}


def _device(cell: Cell, devices: dict[str, Gpu]) -> Gpu:
    name = cell.word()
    try:
        return gpu_called(name, devices.values())
    except CmsError:
        keys = [*devices, *(each.key for each in list_gpus())]
        expected, fix = f"one of: {', '.join(keys)}", nearest(name, keys, lead="")
        raise cell.error(f"there is no GPU {name!r}", expected=expected, fix=fix) from None
