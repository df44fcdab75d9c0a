"""HTML reports of models and of agents, and plots for notebooks."""
