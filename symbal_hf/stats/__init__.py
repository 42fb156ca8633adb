"""Mathematics on numbers alone: tables, clusters, keyness, planes; numpy and scipy only."""
