"""The methods: for each family a folder or a file, with page, own map and kernel."""
