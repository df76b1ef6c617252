"""What a training program imports: `report` for any loop, `IterativeJob` for a data-parallel one, `trial` for
the values of an exploration. Definitions only; it never connects. The way to the cluster is a channel that is
handed in.
"""

from yaqd.mapreduce.params import Param
from yaqd.ml.channel import Channel, Said
from yaqd.ml.iterative import IterativeJob, Partition
from yaqd.ml.reporting import last_checkpoint, report, set_channel
from yaqd.ml.trial import trial

__all__ = ["Channel", "IterativeJob", "Param", "Partition", "Said", "last_checkpoint", "report", "set_channel", "trial"]
