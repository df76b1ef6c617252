import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.Counters;
import org.apache.hadoop.mapred.JobStatus;
import org.apache.hadoop.streaming.StreamJob;
import org.apache.hadoop.util.ToolRunner;

/** Runs many streaming jobs one after the other in one virtual machine: a line in for each, a line out. */
public final class StockStreaming {
  private static final class Job extends StreamJob {
    String outcome(int code) throws Exception {
      StringBuilder said = new StringBuilder();
      said.append(code);
      if (running_ != null) {
        said.append('\t').append(JobStatus.getJobRunState(running_.getJobState()));
        Counters counters = running_.getCounters();
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

  private static synchronized void say(String line) {
    System.out.println("@@ " + line);
    System.out.flush();
  }

  private static void run(String id, String[] words) {
    try {
      Job job = new Job();
      int code;
      try {
        code = ToolRunner.run(new Configuration(), job, words);
      } catch (Exception refused) {
        refused.printStackTrace();
        code = 2;
      }
      say(id + "\t" + job.outcome(code));
    } catch (Throwable broken) {
      broken.printStackTrace();
      say(id + "\t3");
    }
  }

  public static void main(String[] args) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(args[0]));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    say("ready");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] fields = line.split(" ");
      String[] words = new String[fields.length - 1];
      for (int i = 0; i < words.length; i++) {
        // an empty word is written as one dash
        String field = fields[i + 1];
        words[i] = field.equals("-") ? "" : new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
      }
      pool.submit(() -> run(fields[0], words));
    }
    System.exit(0);
  }
}
