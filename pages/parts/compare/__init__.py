"""What the compare page is made of: the runs, their charts and tables, two kernels timed again."""
