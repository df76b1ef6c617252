"""Latent Dirichlet allocation by variational EM: scikit-learn's E step on each partition, one M step over all."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import psi
from sklearn.decomposition import LatentDirichletAllocation

from yaqd.ml import IterativeJob, Param, Partition
from yaqd.ml.examples.data import corpus, part


class TopicModel(IterativeJob):
    """State: the topics' word counts, (topics, vocabulary). Loss: mean -log likelihood of a word."""

    documents = Param(int, default=1_000, help="documents of the corpus")
    vocabulary = Param(int, default=500, help="words of the language")
    topics = Param(int, default=10, help="topics that are looked for")
    hidden = Param(int, default=10, help="topics that the corpus was drawn with")
    sharing = Param(float, default=0.05, help="how much these share words")
    evenness = Param(float, default=100.0, help="how alike all topics are at first")

    def _corpus(self) -> Any:
        return corpus(self.documents, self.vocabulary, self.hidden, self.sharing, self.seed)

    def load(self, partition: Partition) -> Any:
        """Return an estimator that was fitted to the partition once, so that all of it is there, and the partition."""
        [documents] = part(partition, self._corpus())
        # a decay of 0 gives the whole weight to each new fit: that is EM over the whole batch
        count = documents.shape[0]
        model = LatentDirichletAllocation(
            self.topics, learning_decay=0.0, total_samples=count, batch_size=count, random_state=0
        )
        return model.partial_fit(documents), documents

    def initial(self) -> Any:
        """Deal each word to the topics, nearly evenly, at random."""
        counts = np.asarray(self._corpus().sum(axis=0)) / self.topics + 1 / self.topics
        return counts * np.random.default_rng(self.seed).gamma(
            self.evenness, 1 / self.evenness, (self.topics, self.vocabulary)
        )

    def step(self, state: Any, partition: Any) -> Any:
        model, documents = partition
        model.components_ = state.copy()  # it is worked on in place
        model.exp_dirichlet_component_ = np.exp(psi(state) - psi(state.sum(axis=1))[:, None])
        model.random_state_ = np.random.RandomState(0)  # the same start of an E step whatever was computed before
        mixed = model.transform(documents)
        words = state / state.sum(axis=1)[:, None]
        pairs = documents.tocoo()
        likelihood = np.log((mixed[pairs.row] * words[:, pairs.col].T).sum(axis=1)) @ pairs.data
        model.partial_fit(documents)
        return {
            "counts": model.components_ - model.topic_word_prior_,
            "prior": model.topic_word_prior_,
            "loss": -likelihood,
            "words": documents.sum(),
        }

    def combine(self, state: Any, partials: Sequence[Any]) -> tuple[Any, float]:
        words = sum(partial["words"] for partial in partials)
        counts = sum(partial["counts"] for partial in partials)
        return partials[0]["prior"] + counts, sum(partial["loss"] for partial in partials) / words
