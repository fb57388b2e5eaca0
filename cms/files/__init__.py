"""Reading and writing files: problems and solutions in JSON, tables in CSV, YAML of others.

This is the one place where text becomes numbers, exactly and never through a float, and where
errors get the form ``file:line:column: what, expected what; fix``.
"""

from .claims import certificate_from_json, schedule_from_json, schedule_to_json
from .documents import lay_out, number_to_json, write_document
from .json_text import parse_json
from .parsed import Parsed
from .problems import problem_from_json, problem_to_json, read_problem, write_problem, write_program
from .shards.folders import open_problem, pack
from .solutions import read_solution, solution_from_json, solution_to_json, write_solution
from .source import Source, read_source

__all__ = [
    "Parsed", "Source", "certificate_from_json", "lay_out", "number_to_json", "open_problem",
    "pack", "parse_json", "problem_from_json", "problem_to_json", "read_problem", "read_solution",
    "read_source", "schedule_from_json", "schedule_to_json", "solution_from_json",
    "solution_to_json", "write_document", "write_problem", "write_program", "write_solution",
]  # fmt: skip
