"""The evaluation on a GPU: memory shared between processes by the driver, calls timed on the device."""
