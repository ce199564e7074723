"""Tasks: reference modules in the KernelBench convention, read without importing torch. Know no run.

files.py        a module with the TOML file beside it, by path or shipped name; a folder of them
policies.py     the policy that the TOML file states, and a person's own for one run
parsing.py      its text as a syntax tree, within bounds
constants.py    its sizes: module-level numbers, read and replaced
problems.py     problems of SOL-ExecBench and flashinfer-bench as modules
tensors.py      those of their inputs that are in safetensors files
workloads.py    a task that is timed at several sizes
imported.py     what the modules that it imports say now
shown.py        of those what its text reaches, as prompts show it
operators.py    what its text calls: kernel class, chain or recurrence, and what a whole network leaves to PyTorch
"""

from engine.evaluator.tasks import imported as imported
from engine.evaluator.tasks import problems as problems
from engine.evaluator.tasks import shown as shown
from engine.evaluator.tasks import workloads as workloads
from engine.evaluator.tasks.constants import Size as Size
from engine.evaluator.tasks.constants import least_size as least_size
from engine.evaluator.tasks.constants import set_constants as set_constants
from engine.evaluator.tasks.constants import sizes_of as sizes_of
from engine.evaluator.tasks.files import REQUIRED as REQUIRED
from engine.evaluator.tasks.files import SHIPPED as SHIPPED
from engine.evaluator.tasks.files import FolderEntry as FolderEntry
from engine.evaluator.tasks.files import Task as Task
from engine.evaluator.tasks.files import TaskFile as TaskFile
from engine.evaluator.tasks.files import find as find
from engine.evaluator.tasks.files import in_folder as in_folder
from engine.evaluator.tasks.files import made_of as made_of
from engine.evaluator.tasks.files import of_text as of_text
from engine.evaluator.tasks.files import read as read
from engine.evaluator.tasks.files import shipped as shipped
from engine.evaluator.tasks.files import shipped_names as shipped_names
from engine.evaluator.tasks.operators import is_chain as is_chain
from engine.evaluator.tasks.operators import is_recurrence as is_recurrence
from engine.evaluator.tasks.operators import kept_rules as kept_rules
from engine.evaluator.tasks.operators import may_have_weights as may_have_weights
from engine.evaluator.tasks.operators import named_after as named_after
from engine.evaluator.tasks.policies import DEEPEST as DEEPEST
from engine.evaluator.tasks.policies import OWN_MODE as OWN_MODE
from engine.evaluator.tasks.policies import POLICY_OPTIONS as POLICY_OPTIONS
from engine.evaluator.tasks.policies import policy_with as policy_with
from engine.evaluator.tasks.shown import holds_float8 as holds_float8
