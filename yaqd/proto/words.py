"""Words by which peers say what they understand beyond stock YARN. What belongs to a word goes only to who said it."""

from typing import Final

#: a node counts and bounds the processor time of applications; a ResourceManager says for which
CORES: Final = "cores"
#: a master reports losses and follows a number of cores; a ResourceManager reads the ones and orders the other
TRAINING: Final = "training"
#: a master says which containers are idle, and gives them to stages, or back, as a ResourceManager orders
STAGES: Final = "stages"
#: a ResourceManager is set to `yaq.compat=stock`: its nodes report and start as stock ones do
STOCK: Final = "stock"
