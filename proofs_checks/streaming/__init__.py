"""The second checker for problems whose jobs do not fit into memory.

A problem folder and a solution folder (``docs/reference/files.md``) are read shard by shard, and
hold by the same definitions as the documents that ``proofs_checks.checker`` reads: its code reads
and judges all but the jobs. numpy does the rest, many jobs at a time, in exact integers; nothing of
the package is imported. In the order in which to read them: ``stored`` reads files, ``problem`` the
rows of jobs and their SHA-256, ``plan`` compares the blocks that jobs get with their demands and
with the machines, ``pricing`` prices jobs, ``totals`` adds up what a certificate asks of them all,
and ``check`` says whether everything holds.

**The schedule.** Machines of given configurations, and so many blocks of each type for each job,
can be put together if and only if no type has more blocks in use than the machines have: line the
blocks of a type up, on any machines, and hand them out.

Run ``cms-check fleet/ plan/``, or without ``plan/`` for the problem alone;
``--shards 0:100`` reads only these shards' files. The exit status is 0 if everything holds, 1 if
something does not, 2 if a file cannot be read.
"""

from .check import check_folders as check_folders
