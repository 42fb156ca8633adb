"""A simulated chat model: it knows what drawn scenes show, errs at a chosen rate, and reads the packaged prompts."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from benchmark_builder.bases.base import Base
from benchmark_builder.bases.coco_names import natural_vocabulary
from symbal_hf.models.chat.protocol import Answer, Messages


class Oracle:
    """Answers as the truth has it, but for a share of answers that are wrong; the same question, the same answer."""

    revision = "1"

    def __init__(self, base: Base, *, miss: float = 0.0) -> None:
        self.name, self.miss, self.asked = f"oracle:miss={miss}", miss, 0
        self.shown = {hashlib.sha256(base.encoded(row)).digest(): base.objects[row] for row in range(len(base))}
        self.vocabulary = natural_vocabulary(n for present in base.objects for n in present)

    def _draw(self, messages: Messages) -> random.Random:
        return random.Random(repr([(m.text, [hashlib.sha256(i).hexdigest() for i in m.images]) for m in messages]))

    def _present(self, messages: Messages) -> frozenset[str]:
        return self.shown[hashlib.sha256(messages[-1].images[0]).digest()]

    def _true(self, messages: Messages) -> bool:
        text = messages[-1].text
        if messages[-1].images:
            fact = (re.search(r"\[B\] (.*)\n", text) or re.search(r"of the image:\n(.*)\n", text))[1]
            known = self._present(messages)
        else:
            fact = re.search(r"\[B\] (.*)\n", text)[1]
            known = self.vocabulary.find(re.search(r"\[A\] (.*)\n", text)[1])
        return self.vocabulary.find(fact) <= known

    def probability_of_yes(self, conversations: Sequence[Messages]) -> Iterator[tuple[int, Answer]]:
        for place, messages in enumerate(conversations):
            self.asked += 1
            draw = self._draw(messages)
            true = self._true(messages) != (draw.random() < self.miss)
            p = draw.uniform(0.8, 0.99)
            yield place, Answer(text=str(int(true)), yes=p if true else 1 - p)

    def generate(
        self, conversations: Sequence[Messages], *, max_new_tokens: int, temperature: float = 0.0, seed: int = 0
    ) -> Iterator[tuple[int, Answer]]:
        for place, messages in enumerate(conversations):
            self.asked += 1
            text, draw = messages[-1].text, self._draw(messages)
            if "one list for each of" in text:
                lists = [line.split(". ", 1)[1].split(", ") for line in text.splitlines() if re.match(r"\d+\. ", line)]
                count = Counter(name for names in lists for name in names)
                said = [name for name, _ in count.most_common(int((re.search(r"Which (\d+) ", text) or [0, 1])[1]))]
            elif messages[-1].images:
                said = sorted(name for name in self._present(messages) if draw.random() >= self.miss)
            else:
                said = sorted(self.vocabulary.find(text.split("\n")[1]))
            if text.startswith("Describe"):
                yield place, Answer(text="There is " + " and ".join(f"a {name}" for name in said) + ".")
            else:
                yield place, Answer(text="Answer: " + ", ".join(said))
