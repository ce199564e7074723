"""Tasks: reference modules in the KernelBench convention, read without importing torch. Know no run.

files.py        a module with the TOML file beside it, by path or shipped name; a folder of them
policies.py     the policy that the TOML file states, and a person's own for one run
parsing.py      its text as a syntax tree, within bounds
constants.py    its sizes: module-level numbers, read and replaced
problems.py     problems of SOL-ExecBench and flashinfer-bench as modules
workloads.py    a task that is timed at several sizes
imported.py     what the modules that it imports say now
operators.py    what its text calls: the kernel class, and what a whole network leaves to PyTorch
"""

from engine.tasks import imported as imported
from engine.tasks import problems as problems
from engine.tasks import workloads as workloads
from engine.tasks.constants import Size as Size
from engine.tasks.constants import least_size as least_size
from engine.tasks.constants import set_constants as set_constants
from engine.tasks.constants import sizes_of as sizes_of
from engine.tasks.files import SHIPPED as SHIPPED
from engine.tasks.files import FolderEntry as FolderEntry
from engine.tasks.files import Task as Task
from engine.tasks.files import TaskFile as TaskFile
from engine.tasks.files import find as find
from engine.tasks.files import in_folder as in_folder
from engine.tasks.files import made_of as made_of
from engine.tasks.files import of_text as of_text
from engine.tasks.files import read as read
from engine.tasks.files import shipped as shipped
from engine.tasks.files import shipped_names as shipped_names
from engine.tasks.operators import may_have_weights as may_have_weights
from engine.tasks.policies import DEEPEST as DEEPEST
from engine.tasks.policies import OWN_MODE as OWN_MODE
from engine.tasks.policies import POLICY_OPTIONS as POLICY_OPTIONS
from engine.tasks.policies import policy_with as policy_with
