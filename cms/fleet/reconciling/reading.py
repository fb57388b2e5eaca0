"""Files of rates, recognised by what is in them."""

from __future__ import annotations

from ...files.json_text import parse_json
from ...files.parsed import Parsed
from ...files.source import StrPath, read_source
from .prometheus import SERVICE_LABEL, rates_from_matrix
from .rates import Rates
from .rates_table import rates_from_table


def read_rates(path: StrPath, service_label: str = SERVICE_LABEL) -> Rates:
    """Read observed rates: a CSV table, or the JSON of a Prometheus range query.

    Parameters
    ----------
    path : str or path-like
        ``-`` is standard input. A FileError has the place of what is wrong.
    service_label : str
        Which label of a Prometheus series has the service's name.

    Returns
    -------
    Rates
        Moments without a value are gaps (`Rates.gaps`); nothing stands in for them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rates.csv"
    >>> _ = path.write_text("time,service,rate_rps\\n0,chat,5\\n60,chat,7\\n180,chat,6\\n")
    >>> rates = read_rates(path)
    >>> print(rates, *(gap.said(rates.is_clock) for gap in rates.gaps), sep="; ")
    1 service, 4 moments, every 60 s from 0 s to 180 s; chat: no value at 120 s
    """
    source = read_source(path, holds="a table of rates")
    if (source.text or "").lstrip().startswith(("{", "[")):
        return rates_from_matrix(Parsed(parse_json(source), source), service_label)
    return rates_from_table(source)
