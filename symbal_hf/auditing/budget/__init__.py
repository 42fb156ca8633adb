"""Audits that ask a chat model about as few statements as their first finding takes."""
