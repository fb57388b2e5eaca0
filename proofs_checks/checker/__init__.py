"""A second checker of our files, written from the definitions alone.

It imports nothing of this package, only Python's standard library, so that a mistake there cannot
hide here. It is plain on purpose, and made to be read: ``reading``, ``mixes``, ``problem``,
``schedule``, ``knapsacks``, ``filling``, ``boxes``, ``certificate``, ``usable``, ``solution``,
``interference``, in this order, and ``tables``, ``loads``, ``devices``, ``fleet``, ``cut``,
``supplies``, ``deployment``, ``waits``, ``transition``, ``sequence``, ``executions``, ``room``,
``ground``, ``necessity``, ``replay`` for what runs where; ``colocation``, by itself,
for offline work beside online services. Two kinds of the package's data files it reads, which a
document may not contradict: devices, and loads that were simulated (``tables``). All numbers are
exact; there is no tolerance anywhere. ``docs/reference/files.md`` describes the documents.

**The problem.** A machine of some type takes one configuration, a multiset of blocks: a listed one,
or any multiset of total size at most a capacity. Each block serves one job and covers as much of
its demand as the job's demand function says. A schedule must cover every demand, within the limits
on the machines of each type; it costs the sum of its machines' costs. In a problem with
``time_sharing`` a block serves several jobs in turn, as ``mixes.py`` says.

**The certificate.** It gives every block a price such that no machine holds blocks worth more than
it costs. Whoever pays for the machines then pays at least the price of their blocks, and job j's
blocks are worth at least h_j, the price of the cheapest blocks that cover its demand. So every
schedule costs at least the sum of the h_j. ``certificate.py`` adds limits and branches.

**A transition.** Actions on GPUs, each with those that it waits for: no execution that respects the
waits may break a floor or a layout, and the last state is the target. ``replay.py`` says how.

Run ``cms-check problem.json solution.json``, or give it one plan file: of
that it reads the problem and the solution inside, and the GPUs, which have to be such that they can
be cut so; it says nothing about the services and operating points they were made from, but under
interference it reads the pairs as well, as ``interference.py`` says. Or give it a deployment or a
transition: there supplies are computed again, and the layouts judged by the devices in the file.
The exit status is 0 if everything holds, 1 if something does not, 2 if a file cannot be read.
"""

from .certificate import certificate_bound as certificate_bound
from .colocation import check_colocation as check_colocation
from .deployment import check_deployment as check_deployment
from .filling import dearest_filling as dearest_filling
from .knapsacks import cheapest_option as cheapest_option
from .problem import check_problem as check_problem
from .problem import problem_sha256 as problem_sha256
from .reading import Fault as Fault
from .reading import parse_document as parse_document
from .replay import check_transition as check_transition
from .schedule import check_schedule as check_schedule
from .solution import check_solution as check_solution
