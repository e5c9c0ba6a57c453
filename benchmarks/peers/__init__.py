"""Parts of the league: networks, other tools, the program that runs their C, rows, and the page."""
