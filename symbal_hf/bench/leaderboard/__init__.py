"""What is handed in to the leaderboard, and who may stand on it."""
