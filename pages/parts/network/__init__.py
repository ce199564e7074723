"""What the page of networks is made of. Figures are those of `storage.networks.ranking`.

networks_list.py       networks that were captured, and how one is
"""
