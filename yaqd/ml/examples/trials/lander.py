r"""Search a policy for LunarLander by the cross-entropy method: one trial of an exploration.

    yaq ml explore lander.py --space lander.toml --metric reward --lower -500 --upper 300 --target 200 --epochs 40 \
        --slots 2

An epoch is some generations of candidates, and then 100 episodes of landing with their mean: 200 counts as solved. A
generation draws candidates around the mean, lets each land a few times, and moves the mean to the best of them. A
policy sets the thrust of both engines, linear in what it sees or with one hidden layer. It needs
`pip install 'gymnasium[box2d]'`.
"""

import pickle
from collections.abc import Mapping
from typing import Any, Final

import gymnasium
import numpy as np

from yaqd.ml import last_checkpoint, report, trial

EPOCHS: Final = 40
#: episodes of an epoch: of candidates, and of their mean
SEARCHED: Final = 60
TESTED: Final = 100
#: a candidate that still hovers then is no better than its reward so far; of the mean counts what LunarLander counts
_SEARCH_STEPS: Final = 500
_TEST_STEPS: Final = 1000


class Search:
    """The mean policy, and how far candidates are drawn from it."""

    def __init__(self, params: Mapping[str, Any], inputs: int, engines: int) -> None:
        self.params, self.inputs, self.engines = dict(params), inputs, engines
        hidden = self.params["hidden"]
        size = (inputs + 1) * engines if hidden == 0 else (inputs + 1) * hidden + (hidden + 1) * engines
        self.mean = np.zeros(size)
        self.spread = np.full(size, float(self.params["spread"]))
        self.rng = np.random.default_rng(1)
        self.landed = self.generations = self.epoch = 0

    def trained(self, world: Any) -> float:
        """Search for one epoch; return the mean reward of the mean policy."""
        self.epoch += 1
        while self.landed < self.epoch * SEARCHED:
            self._generation(world)
        test = np.random.default_rng((2, self.epoch))
        return float(np.mean([self._land(world, self.mean, test, _TEST_STEPS) for _ in range(TESTED)]))

    def _generation(self, world: Any) -> None:
        many, episodes = self.params["candidates"], self.params["episodes"]
        drawn = self.mean + self.spread * self.rng.standard_normal((many, self.mean.size))
        rewards = np.array(
            [[self._land(world, weights, self.rng, _SEARCH_STEPS) for _ in range(episodes)] for weights in drawn]
        )
        self.landed += rewards.size
        best = drawn[np.argsort(rewards.mean(axis=1))[-max(2, round(self.params["elite"] * many)) :]]
        self.mean = best.mean(axis=0)
        # without noise of their own candidates soon meet where none lands
        noise = self.params["noise"] * self.params["decay"] ** self.generations
        self.spread = np.sqrt(best.var(axis=0) + noise**2)
        self.generations += 1

    def _land(self, world: Any, weights: Any, rng: np.random.Generator, steps: int) -> float:
        """Return the reward of one episode."""
        seen, _ = world.reset(seed=int(rng.integers(1 << 31)))
        whole = 0.0
        for _ in range(steps):
            seen, reward, ended, cut, _ = world.step(self._thrust(weights, seen))
            whole += float(reward)
            if ended or cut:
                break
        return whole

    def _thrust(self, weights: Any, seen: Any) -> Any:
        """Return the thrust of each engine; LunarLander cuts it to -1 to 1."""
        hidden = self.params["hidden"]
        if hidden == 0:
            found = weights.reshape(self.inputs + 1, self.engines)
            return seen @ found[:-1] + found[-1]
        cut = (self.inputs + 1) * hidden
        first = weights[:cut].reshape(self.inputs + 1, hidden)
        second = weights[cut:].reshape(hidden + 1, self.engines)
        return np.tanh(seen @ first[:-1] + first[-1]) @ second[:-1] + second[-1]


def main() -> None:
    world: Any = gymnasium.make("LunarLander-v3", continuous=True)
    saved = last_checkpoint()
    if saved is not None:
        search: Search = pickle.loads(saved)
    else:
        search = Search(trial.params, world.observation_space.shape[0], world.action_space.shape[0])
    while search.epoch < EPOCHS:
        reward = search.trained(world)
        if report(search.epoch, reward=reward, checkpoint=lambda: pickle.dumps(search)).stop:
            break


if __name__ == "__main__":
    main()
