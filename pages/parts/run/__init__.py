"""What a run's page is made of: header, figures, curve, lineage, kernels, the kernel beside the curve, spending."""
