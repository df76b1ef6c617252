"""Where these daemons deliberately answer otherwise than Hadoop's, and which parts of Hadoop they do without.

Whoever makes such a difference writes it down here; the compatibility page shows it.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Difference:
    #: who meets it
    area: str
    #: what it is about
    subject: str
    hadoop: str
    here: str
    why: str


#: keys of which not every value of Hadoop's is taken: what is, and a value of Hadoop's that is refused at the start
PARTLY: Final[dict[str, tuple[str, str]]] = {
    "hadoop.security.authentication": ("`simple` only", "kerberos"),
    "yarn.resourcemanager.scheduler.class": (
        "CapacityScheduler only",
        "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler",
    ),
    "yarn.scheduler.capacity.*.capacity": ("percent only, no weights, no amounts", "3w"),
    "yarn.nodemanager.log-aggregation.compression-type": ("`none`, `gz`", "lzo"),
    "mapreduce.map.output.compress.codec": (
        "Hadoop's classes of LZ4, Snappy and Zstandard; its DefaultCodec, DeflateCodec, GzipCodec and BZip2Codec are"
        " taken for `lz4`",
        "org.apache.hadoop.io.compress.PassthroughCodec",
    ),
}

#: keys that are there for stock programs that read the same files, and for nothing here
FOR_OTHERS: Final = {
    "yarn.nodemanager.aux-services": "stock NodeManagers; `mapreduce_shuffle` is always served here",
    "mapreduce.framework.name": "stock clients",
    "yarn.resourcemanager.connect.retry-interval.ms": "stock clients and NodeManagers",
}

DIFFERENCES: Final[tuple[Difference, ...]] = (
    Difference(
        "daemons",
        "where they listen when no file and no -D names a host",
        "on all addresses of the machine",
        "on 127.0.0.1, and a line at the start says what is open to whom; a NodeManager whose ResourceManager is on"
        " another machine wants yarn.nodemanager.hostname",
        "callers are believed who they say they are, so that what is open is open to everybody",
    ),
    Difference(
        "daemons",
        "who administrates where yarn.admin.acl is unset",
        "everybody",
        "the user who started the daemon",
        "whoever reaches the port could drain nodes and change queues",
    ),
    Difference(
        "command line",
        "a client without configuration files",
        "asks 0.0.0.0:8032",
        "`yaq` asks nobody and says what to set",
        "it would wait for nobody, or talk to somebody else's cluster",
    ),
    Difference(
        "client service",
        "containers that have ended, in getContainers and getContainerReport",
        "not there, unless the timeline service is on",
        "there, the last 500 of an attempt",
        "what ran where is asked most when it is over",
    ),
    Difference(
        "client service",
        "submission to a queue that is not there, or takes none",
        "accepted; the application fails at once",
        "refused with the same text",
        "nothing has to be asked for afterwards",
    ),
    Difference(
        "client service",
        "an expire time that cannot be read",
        "java.time.format.DateTimeParseException",
        "YarnException with the text that Hadoop has for it",
        "clients show the text",
    ),
    Difference(
        "client service",
        "cancelDelegationToken with a wrong password",
        "cancels the token",
        "refused: no such token",
        "whoever cannot use a token has no business with it",
    ),
    Difference(
        "client service",
        "applicationTags of getApplications",
        "compared as they are; stock clients write tags in small letters",
        "compared whatever the case",
        "other clients need not know",
    ),
    Difference(
        "client service",
        "queue statistics",
        "counters since the start",
        "of ended applications, those still remembered (yarn.resourcemanager.max-completed-applications)",
        "counted when asked, so that nothing must be kept in step",
    ),
    Difference(
        "node",
        "localization",
        "a process for each user's files, over LocalizationProtocol",
        "the NodeManager fetches itself, in threads; the protocol is not served",
        "no JVM is started before the container's own",
    ),
    Difference(
        "node",
        "pattern of a PATTERN resource",
        "any Java regular expression",
        "the part of Java's language that Python's shares; other constructs (intersections, classes within classes,"
        " \\p{..}, \\Q..\\E, named groups, ...) are refused, and so is repeating a group or repeating often",
        "it is matched by Python; some expressions take for ever on a name made for them",
    ),
    Difference(
        "node",
        "opportunistic containers in the way of guaranteed ones",
        "killed, or paused where the container executor can",
        "killed",
        "pausing needs control groups",
    ),
    Difference(
        "node",
        "processes that leave their container's process group (setsid, daemons)",
        "outlive it; their memory counts while they descend from it",
        "end with it, by SIGTERM and then SIGKILL as the group does; their memory counts. Where cgroup v2 cannot be "
        "written, a process that gives up its mark (su, ulimit -x), its environment and its parents within one look of "
        "the memory watch ends with the last container that may have started it, and its memory does not count",
        "nothing that a container started outlives the last container that could have started it",
    ),
    Difference(
        "scheduler",
        "units of resource types",
        "from p (10^-12) to Pi",
        "single units and larger ones",
        "amounts are whole numbers of single units everywhere",
    ),
    Difference(
        "scheduler",
        "a container update that increases to less, decreases to more, or to more than the node has",
        "never answered",
        "RESOURCE_OUTSIDE_ALLOWED_RANGE",
        "the master would wait for ever",
    ),
    Difference(
        "scheduler",
        "over-commit time-out of a node that is made smaller (updateNodeResource, dynamic-resources.xml)",
        "containers that the node has no room for any more are taken back after it; unset: never",
        "not read: they run to their end",
        "a node can be drained, with a time-out, when they must go",
    ),
    Difference(
        "scheduler",
        "a container that a node's proxy has placed on a node which has just gone",
        "forgotten: its master waits for it",
        "ends with exit status -100",
        "its master asks again at once",
    ),
    Difference(
        "node",
        "a NodeManager that is killed with its AMRMProxy, masters that outlive it",
        "go on if recovery is enabled; container ids begin anew",
        "go on, no container id is used again, and a lost answer is given again with the same containers",
        "ids that come twice name two containers",
    ),
    Difference(
        "scheduler",
        "opportunistic containers on nodes with equally long queues",
        "given at random, also to nodes that take none",
        "to the node that has the least in use; nodes with no queue are left out",
        "they start sooner, and are not lost",
    ),
    Difference(
        "node",
        "launch of our own job manager and Python tasks",
        "not known",
        "forked from a prepared process when the launch context asks for it; elsewhere the same command starts cold",
        "milliseconds instead of the start of an interpreter",
    ),
    Difference(
        "wire",
        "fields that Hadoop does not have",
        "-",
        "extension fields from 10001 on, to nodes only that have said that they understand them; what our job manager "
        "says of its job goes to every ResourceManager and node, since stock ones skip it",
        "stock peers see canonical messages",
    ),
    Difference(
        "state store",
        "where applications outlive the ResourceManager",
        "files, LevelDB or ZooKeeper; high availability",
        "one SQLite file of one ResourceManager; no high availability, HAServiceProtocol is not served",
        "nothing else has to be installed or kept running",
    ),
    Difference(
        "scheduler",
        "scheduler classes",
        "capacity, fair, FIFO",
        "capacity; another class is refused at the start",
        "one scheduler, done whole",
    ),
    Difference(
        "wire",
        "who a caller is",
        "Kerberos, or the name that the caller gives",
        "the name that the caller gives, and tokens; Kerberos and encryption on the wire are not there",
        "for networks in which the callers are trusted, as Hadoop without Kerberos is",
    ),
    Difference(
        "web",
        "HTTPS",
        "yarn.http.policy chooses HTTP or HTTPS",
        "HTTP; a server in front can add HTTPS",
        "certificates are better kept in one place",
    ),
    Difference(
        "web",
        "host in tracking addresses when the web address is a loopback one",
        "the machine's canonical name",
        "the configured host",
        "the name may not resolve to where the server listens",
    ),
    Difference(
        "web",
        "content types of REST answers",
        "JSON or XML, as asked",
        "JSON",
        "the programs that ask, ask for JSON",
    ),
    Difference(
        "web",
        "methods that a REST address does not have; OPTIONS",
        "503 with an empty exception; a WADL document",
        "405; 200 without a body",
        "says what is wrong; nobody reads the document",
    ),
    Difference(
        "web",
        "an application that a caller may not view, over REST",
        "its diagnostics are shown",
        "its diagnostics are not shown",
        "they hold paths and output of its containers",
    ),
    Difference(
        "web",
        "containers and applications at a node, where access lists are on",
        "shown to everybody",
        "shown to those who may view the application; lists leave out the others",
        "diagnostics hold output of the containers",
    ),
    Difference(
        "web",
        "resourceSecondsMap and preemptedResourceSecondsMap of an application",
        "an object in which the name entry is repeated",
        "an object with one entry, a list",
        "JSON parsers keep the last of repeated names",
    ),
    Difference(
        "web",
        "page of an unknown application",
        "200 with a text",
        "404 with a text",
        "so that programs can tell",
    ),
    Difference(
        "web",
        "logs at a node that no longer knows the application, where access lists are on",
        "not found, or sent on to the log server",
        "the same; administrators of the cluster read what is still there",
        "they look for what went wrong",
    ),
    Difference(
        "web",
        "names in user.name",
        "any text",
        "up to 128 characters without blanks, quotes and separators; else 400",
        "the name goes into a cookie, a header and logs",
    ),
    Difference(
        "web proxy",
        "redirects that an application's page answers with",
        "followed by the proxy, wherever they lead",
        "handed to the browser, those within the application under the proxy's path",
        "the proxy connects to nothing but the registered address",
    ),
    Difference(
        "web proxy",
        "link-local addresses as an application's own",
        "connected to",
        "refused",
        "clouds hand the ResourceManager's machine its credentials there",
    ),
    Difference(
        "web proxy",
        "answer headers",
        "all handed on",
        "not those that bind the browser beyond the application: cookies, HSTS, Clear-Site-Data and their like",
        "an application must not speak for the ResourceManager's address",
    ),
    Difference(
        "web proxy",
        "an id that is none; a master that cannot be reached; one that is too slow",
        "500 with a stack trace",
        "404; 502; 504, each with one line",
        "says what is wrong",
    ),
    Difference(
        "web proxy",
        "a master that does not know the proxy's address",
        "recognized by a request from this machine to /proxy/redirect",
        "recognized by the redirect in the master's own answer",
        "browsers on the same machine get through",
    ),
    Difference(
        "job manager",
        "what mapreduce.job.counters.max limits",
        "the counters of each task, and those that all tasks of a job make together",
        "the counters of each task",
        "many tasks with a few counters each are no names made from data",
    ),
)
