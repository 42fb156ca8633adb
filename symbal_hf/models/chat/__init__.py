"""Chat models in this process or at a server, and what they are asked."""
