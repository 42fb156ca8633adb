"""What goes wrong with what people give us, in one sentence each."""


class BadData(ValueError):
    """Data that cannot be used as they are; the message says what is wrong, where, and what to do."""


class ChatFailed(RuntimeError):
    """A model answers nothing; the message says which, why, and what to do."""


class DeadRank(RuntimeError):
    """A process that shared the work is gone; what was finished is kept, and the message says how to go on."""


class MissingModel(RuntimeError):
    """A model's weights are neither installed nor reachable; the message says what to install."""


class UnknownOption(TypeError):
    """An option that does not exist; the message names the nearest one and all that there are."""
