"""What a kernel's page is made of: its header, a file for each tab, and what the tabs say."""
