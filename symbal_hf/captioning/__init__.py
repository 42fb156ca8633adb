"""Images to captions, before an audit."""
