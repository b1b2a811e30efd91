"""The worker behind a live model: `python -m kvscope_live --stdio` answers over standard input and output."""
