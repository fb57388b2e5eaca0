"""Reports as a page: one HTML file that holds all it shows and fetches nothing."""
