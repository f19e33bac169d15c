package org.apache.hadoop.tools;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.tools.DistCpOptions.FileAttribute;
import org.apache.hadoop.util.Tool;

/**
 * Replaces distcp in its published tests: its arguments become those of {@code psync --spark}, which runs as a separate
 * process. {@code PSYNC} in the environment is the program.
 */
public final class DistCp extends Configured implements Tool {
  /** rsync options for the attributes of distcp's {@code -p}. psync does not preserve others, such as replication. */
  private static final Map<FileAttribute, String> PRESERVED = Map.of(
      FileAttribute.PERMISSION, "-p", FileAttribute.USER, "-o", FileAttribute.GROUP, "-g", FileAttribute.ACL, "-A", FileAttribute.XATTR, "-X",
      FileAttribute.TIMES, "-t");

  /** For {@link org.apache.hadoop.util.ToolRunner}. */
  public DistCp() {}

  /** As distcp's; {@code options} are those of {@link #run}. */
  public DistCp(Configuration conf, DistCpOptions options) {
    super(conf);
    if (options != null) {
      throw new UnsupportedOperationException("options are arguments here");
    }
  }

  @Override
  public int run(String[] arguments) {
    try {
      return synchronize(OptionsParser.parse(arguments));
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage());
      return DistCpConstants.INVALID_ARGUMENT;
    } catch (IOException e) {
      System.err.println(e.getMessage());
      return DistCpConstants.UNKNOWN_ERROR;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return DistCpConstants.UNKNOWN_ERROR;
    }
  }

  private int synchronize(DistCpOptions options) throws IOException, InterruptedException {
    Path target = qualified(options.getTargetPath());
    // Without either, distcp copies sources into a target that exists.
    boolean copiesContents = options.shouldSyncFolder() || options.shouldOverwrite() || !target.getFileSystem(getConf()).exists(target);
    for (Path given : options.getSourcePaths()) {
      Path source = qualified(given);
      if (!source.getFileSystem(getConf()).exists(source)) {
        return DistCpConstants.INVALID_ARGUMENT;
      }
      List<String> command = new ArrayList<>(List.of(System.getenv("PSYNC"), "--spark=local[2]", "--conf=spark.ui.enabled=false", "-rl"));
      PRESERVED.forEach((attribute, option) -> {
        if (options.shouldPreserve(attribute)) {
          command.add(option);
        }
      });
      if (options.shouldDeleteMissing()) {
        command.add("--delete");
      }
      if (options.shouldOverwrite()) {
        command.add("-I");
      }
      command.add(source + (copiesContents ? "/" : ""));
      command.add(target.toString());
      int code = codeOf(new ProcessBuilder(command), options);
      if (code != DistCpConstants.SUCCESS) {
        return code;
      }
    }
    return DistCpConstants.SUCCESS;
  }

  private Path qualified(Path path) throws IOException {
    return path.getFileSystem(getConf()).makeQualified(path);
  }

  private static int codeOf(ProcessBuilder builder, DistCpOptions options) throws IOException, InterruptedException {
    Process process = builder.redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    System.out.println(String.join(" ", builder.command()) + "\n" + said);
    if (process.waitFor() == 0) {
      return DistCpConstants.SUCCESS;
    }
    if (!said.contains("does not support it")) {
      return DistCpConstants.UNKNOWN_ERROR;
    }
    return options.shouldPreserve(FileAttribute.ACL) ? DistCpConstants.ACLS_NOT_SUPPORTED : DistCpConstants.XATTRS_NOT_SUPPORTED;
  }
}
