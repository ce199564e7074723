"""Routes beside the pages.

routes.py                          what components ask between reruns, and the list of all routes
machine_routes.py, api_answers.py  read-only routes for machines; how they answer
api_runs.py, metrics_text.py       runs as plain data; figures for Prometheus
"""
