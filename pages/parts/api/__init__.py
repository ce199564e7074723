"""Routes beside the pages.

routes.py                          what components ask between reruns, and the list of all routes
machine_routes.py, api_answers.py  read-only routes for machines; what they answer, runs as plain data and
                                   figures for Prometheus
"""
