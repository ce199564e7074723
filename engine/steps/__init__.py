"""One file per step of the loop. Each carries out a move and emits what came of it; none decides what comes next."""
