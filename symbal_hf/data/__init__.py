"""Where rows come in: any source as one table of ids, captions, references, objects and images."""
