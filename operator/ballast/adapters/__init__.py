"""One module per outside system; every third-party exception is translated at its module's single edge."""
