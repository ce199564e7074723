"""What teaches a coding agent to write kernels with Tilewright, as a folder to put beside its other skills.

installing.py   writes the folder
SKILL.md        the way from a module to a faster kernel; what an agent reads first
AGENTS.md       the same in a few lines, for agents that read no skills
references/     kernel files, tasks, verdicts, profiles, tuning
scripts/        the program that judges a kernel file and says what came of it in a few lines
"""
