"""Jobs that train models: what their job manager serves (`service`), and what runs in their containers (`tasks`)."""
