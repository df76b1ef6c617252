import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.Counters;
import org.apache.hadoop.mapred.JobClient;
import org.apache.hadoop.mapred.JobStatus;
import org.apache.hadoop.mapred.RunningJob;
import org.apache.hadoop.streaming.StreamJob;
import org.apache.hadoop.util.ToolRunner;

/** Runs many streaming jobs one after the other in one virtual machine: a line in for each, a line out. */
public final class StockStreaming {
  private static final class Job extends StreamJob {
    String outcome(int code) throws Exception {
      StringBuilder said = new StringBuilder();
      said.append(code);
      if (running_ != null) {
        // a job on daemons is asked for anew, its client is closed; the local runner knows its own alone
        boolean isLocal = "local".equals(jobConf_.get("mapreduce.framework.name", "local"));
        RunningJob ended = isLocal ? running_ : new JobClient(jobConf_).getJob(running_.getID());
        said.append('\t').append(JobStatus.getJobRunState(ended.getJobState()));
        Counters counters = ended.getCounters();
        if (counters != null) {
          for (Counters.Group group : counters) {
            for (Counters.Counter counter : group) {
              said.append('\t').append(encoded(group.getName())).append(' ').append(encoded(counter.getName()));
              said.append(' ').append(counter.getValue());
            }
          }
        }
      }
      return said.toString();
    }
  }

  private static String encoded(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }

  private static void say(String line) {
    System.out.println("@@ " + line);
    System.out.flush();
  }

  private static void run(String[] words) {
    try {
      Job job = new Job();
      int code;
      try {
        code = ToolRunner.run(new Configuration(), job, words);
      } catch (Exception refused) {
        refused.printStackTrace();
        code = 2;
      }
      say(job.outcome(code));
    } catch (Throwable broken) {
      broken.printStackTrace();
      say("3");
    }
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    say("ready");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] fields = line.split(" ");
      String[] words = new String[fields.length];
      for (int i = 0; i < words.length; i++) {
        // an empty word is written as one dash
        String field = fields[i];
        words[i] = field.equals("-") ? "" : new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
      }
      run(words);
    }
    System.exit(0);
  }
}
