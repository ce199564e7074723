"""A kernel of a run as one Python file that needs no Tilewright.

one_file.py     the file: the kernel's text between what it brings along and what its module says of itself
heading.py      its head: figures, conditions, warnings
carried.py      the functions whose text it brings along
in_program.py   what the kernel is worth inside one process, measured once
"""

from engine.exporting.one_file import SOLUTIONS as SOLUTIONS
from engine.exporting.one_file import exported as exported
from engine.exporting.one_file import kernel_of as kernel_of
from engine.exporting.one_file import read_record as read_record
from engine.exporting.one_file import solution as solution
from engine.exporting.one_file import standing_alone as standing_alone
from engine.exporting.one_file import warned as warned
from engine.exporting.one_file import without_support as without_support
